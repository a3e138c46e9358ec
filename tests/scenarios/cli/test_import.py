"""`trunkline import --from litecone`: files in, files or saved definitions out, and an account of the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.scenarios.cli.test_command_line import Trunkline, trunkline
from tests.scenarios.litecone import IN_A_ROW, SEVERAL_STEPS_EACH, workflow

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import ScriptedAgent, simple_success

pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

__all__ = ["trunkline"]

SECRET = "s3cr3t-of-the-test"


def write(name: str, content: Json) -> str:
    Path(name).write_text(json.dumps(content))
    return name


def odd(name: str) -> JsonObject:
    condition: JsonObject = {"expression": "1 + 1"}
    return workflow(
        name,
        "a",
        a={"type": "conditional", "condition": condition, "if_true_step": "b"},
        b={"agent_name": "Echo", "input_mapping": {}},
    )


async def test_files_are_written_that_can_be_applied(trunkline: Trunkline) -> None:
    files = [write("one.json", [IN_A_ROW, SEVERAL_STEPS_EACH])]
    done = await trunkline("import", "--from", "litecone", *files, "--out", "out")
    again = await trunkline("import", "--from", "litecone", *files, "--out", "out")
    names = sorted(path.name for path in Path("out/workflows").iterdir())
    valid = await trunkline("workflows", "validate", *(f"out/workflows/{name}" for name in names))
    Path("out/workflows/brew-and-taste.yaml").write_text("mine")
    refused = await trunkline("import", "--from", "litecone", *files, "--out", "out")
    assert (done.code, again.code, valid.code) == (0, 0, 0), (done, again, valid)
    assert names == ["brew-and-taste.yaml", "wash-and-weigh.each.yaml", "wash-and-weigh.yaml"]
    assert "Imported 3 workflows and 0 agents; everything was converted." in done.err
    assert (refused.code, Path("out/workflows/brew-and-taste.yaml").read_text()) == (4, "mine")


async def test_what_is_missing_is_reported_in_the_file_too_and_not_saved(trunkline: Trunkline) -> None:
    file = write("odd.json", odd("odd-one"))
    printed = await trunkline("import", "--from", "litecone", file)
    applied = await trunkline("import", "--from", "litecone", file, "--apply", "--json")
    missing = await trunkline("workflows", "show", "odd-one")
    assert (printed.code, applied.code, missing.code) == (7, 7, 3)
    line = "odd.json: odd-one: steps.a.condition.expression: the condition has something unknown at '+ 1': 1 + 1."
    assert f"NOT CONVERTED: {line}" in printed.err
    assert f"# Not converted: {line}" in printed.out
    assert applied.json["done"] == {"workflow odd-one": "not saved"}
    assert applied.json["not_carried_over"] == 1


async def test_agents_and_workflows_are_saved_and_run(
    trunkline: Trunkline, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ScriptedAgent(simple_success({"clean": "x", "unit": "g"})) as agent:
        auth: JsonObject = {"auth_type": "bearer", "auth_config": {"token": SECRET}}
        agents: Json = {"agents": [{"name": name, "url": agent.url, **auth} for name in ("Echo", "Weigh")]}
        files = [write("agents.json", agents), write("wash.json", SEVERAL_STEPS_EACH)]
        unset = await trunkline("import", "--from", "litecone", *files, "--apply")
        for name in ("ECHO", "WEIGH"):
            monkeypatch.setenv(f"TRUNKLINE_SECRET_{name}", SECRET)
        saved = await trunkline("import", "--from", "litecone", *files, "--apply", "--json")
        again = await trunkline("import", "--from", "litecone", *files, "--apply", "--json")
        run = await trunkline(
            "run", "wash-and-weigh", "-i", 'items=["a", "b"]', "-i", "unit=g", "--follow", "--json"
        )
    assert (unset.code, "TRUNKLINE_SECRET_ECHO is not set" in unset.err) == (2, True)
    assert saved.json["done"] == {
        "agent Echo": "created", "agent Weigh": "created",
        "workflow wash-and-weigh.each": "created", "workflow wash-and-weigh": "created",
    }  # fmt: skip
    assert isinstance(done := again.json["done"], dict)
    assert done["workflow wash-and-weigh"] == "unchanged"
    assert run.code == 0, run
    assert agent.calls[0].headers["Authorization"] == f"Bearer {SECRET}"
    assert all(SECRET not in text for result in (unset, saved, again) for text in (result.out, result.err))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["a.json", "b.json"], 2, "--from litecone"),
        (["a.json", "--out", "x"], 2, "--from litecone"),
        (["--from", "litecone", "a.json", "--out", "x", "--apply"], 2, "cannot be combined"),
        (["--from", "litecone", "nothing.json"], 2, "Cannot read nothing.json"),
        (["--from", "litecone", "broken.json"], 7, "broken.json"),
        (["--from", "other", "a.json"], 2, "other"),
    ],
)
async def test_a_wrong_call_is_explained(
    trunkline: Trunkline, arguments: list[str], code: int, message: str
) -> None:
    write("a.json", IN_A_ROW)
    write("b.json", IN_A_ROW)
    Path("broken.json").write_text('{"name": [}')
    done = await trunkline("import", *arguments)
    assert (done.code, message in done.err) == (code, True), done
