"""Agents that are programs, from the workflow to their lines: the bridge starts them, the registry names them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.scenarios.hostile.test_programs import command, lives

from trunkline.jsontypes import JsonObject, encode
from trunkline.testing import RunningSystem
from trunkline.testing.system import error_of

pytestmark = pytest.mark.anyio

ZONES = Path(__file__).parent / "zones"
PROGRAM: JsonObject = {"transport": "stdio", "protocol": "simple-a2a"}
ZONE: JsonObject = {
    "transport": "stdio",
    "protocol": "jsonrpc-2.0",
    "protocol_config": {"profile": "any", "output_mode": "data"},
}
CALL: JsonObject = {"transport": "stdio", "protocol": "jsonrpc-call", "protocol_config": {"method": "work"}}
BOTH: JsonObject = {
    "name": "both",
    "steps": {
        "first": {"agent": "Plain", "input": {"text": "${ input.text }"}},
        "second": {"agent": "Zone", "input": {"said": "${ steps.first.output.data.text }"}},
    },
    "output": "${ steps.second.output }",
}


def one_step(agent: str) -> JsonObject:
    return {
        "name": "one",
        "steps": {"only": {"agent": agent, "retry": {"max_attempts": 2, "first_delay": "1ms"}}},
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where programs note that they have been started; the settings name them before the system is."""
    notes = tmp_path / "notes"
    notes.mkdir()
    serve = (sys.executable, "-m", "trunkline", "zone", "serve", "chatty_zone:zone", "--stdio")
    programs: JsonObject = {
        "simple": list(command("simple", notes)),
        "dies": list(command("dies", notes)),
        "zone": {"command": [*serve, "--data", str(tmp_path / "zone")], "environment": ["PYTHONPATH"]},
    }
    monkeypatch.setenv("PYTHONPATH", str(ZONES))
    monkeypatch.setenv("TRUNKLINE_STDIO_COMMANDS", encode(programs).decode())
    return notes


async def test_steps_are_done_by_programs(folder: Path, system: RunningSystem) -> None:
    await system.register("Plain", "stdio:simple", **PROGRAM)
    await system.register("Zone", "stdio:zone", **ZONE)
    await system.save(BOTH)
    run = await system.run("both", {"text": "hello"})
    assert run["status"] == "COMPLETED", run
    assert run["output"] == {"params": {"said": "hello"}, "status": "success"}
    exchanges = await system.items(f"/runs/{run['id']}/wire")
    requests = [exchange["request"] for exchange in exchanges]
    assert [request["url"] for request in requests if isinstance(request, dict)] == [
        "stdio:simple",
        "stdio:zone",
    ]
    assert len(lives(folder)) == 1


async def test_a_step_whose_program_died_is_sent_again_to_the_next_one(
    folder: Path, system: RunningSystem
) -> None:
    await system.register("Dies", "stdio:dies", **CALL)
    await system.save(one_step("Dies"))
    first = await system.run("one")
    second = await system.run("one")
    assert (first["status"], second["status"]) == ("COMPLETED", "COMPLETED")
    steps = second["steps"]
    assert isinstance(steps, list)
    assert isinstance(steps[0], dict)
    assert steps[0]["attempts"] == 2
    assert len(lives(folder)) == 2


async def test_a_program_that_the_settings_do_not_name_is_not_run(
    folder: Path, system: RunningSystem
) -> None:
    await system.register("Other", "stdio:other", **PROGRAM)
    await system.save(one_step("Other"))
    run = await system.run("one")
    assert run["status"] == "FAILED"
    error = error_of(run)
    assert error["code"] == "agent_program_unknown"
    assert "TRUNKLINE_STDIO_COMMANDS" in str(error["fix"])
    assert lives(folder) == []
