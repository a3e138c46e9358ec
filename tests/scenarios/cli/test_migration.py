"""`trunkline agents migrate`: what is printed, what is refused, and the codes that scripts go by."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.scenarios.api.test_migration import kit
from tests.scenarios.kit_server import served

from trunkline.cli.app import run_command_line
from trunkline.cli.exit_codes import Exit
from trunkline.jsontypes import JsonObject
from trunkline.testing import FakeClock, ScriptedAgent, running_system, simple_success
from trunkline.testing.system import objects_in

# It is about the command line, which is the same on every set of backends.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> JsonObject:
        return json.loads(self.out)


class Commands:
    def __init__(self, url: str, captured: pytest.CaptureFixture[str]) -> None:
        self._url = url
        self._captured = captured

    async def __call__(self, *arguments: str) -> Result:
        # In a thread: the agents of these tests answer on this loop.
        code = await asyncio.to_thread(run_command_line, ["agents", *arguments, "--url", self._url])
        said = self._captured.readouterr()
        return Result(code, said.out, said.err)

    async def migrate(self, *arguments: str) -> Result:
        return await self("migrate", *arguments)


@pytest.fixture
def agents(
    trunkline_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Commands:
    monkeypatch.setenv("LOGNAME", "ann")
    return Commands(trunkline_url, capsys)


async def test_an_agent_is_moved_from_the_plan_to_the_cutover_and_back(agents: Commands) -> None:
    async with served(kit()) as url:
        await agents("create", "Kit", url, "--protocol", "simple-a2a", "--repeatable")
        plan = await agents.migrate("plan", "Kit")
        assert plan.code == Exit.OK
        assert "no_target" in plan.out
        assert "fix: trunkline agents migrate ready Kit --to jsonrpc-2.0" in plan.out
        shadow = await agents.migrate(
            "shadow", "Kit", "--percent", "50", "--comparisons", "0", "--note", "go"
        )
        assert (shadow.code, "stage    shadow" in shadow.out) == (Exit.OK, True), shadow
        checked = await agents.migrate("check", "Kit")
        assert checked.code == Exit.OK, checked
        assert "[1/1] Kit: " in checked.err
        refused = await agents.migrate("cutover", "Kit", "--json")
        assert refused.code == Exit.CONFLICT
        problem = json.loads(refused.err or refused.out)
        assert [error["path"] for error in problem["errors"]] == ["Kit"]
        assert (await agents.migrate("ready", "Kit", "--note", "deployed, told")).code == Exit.OK
        cut = await agents.migrate("cutover", "Kit", "--json")
        assert cut.code == Exit.OK, cut
        assert objects_in([cut.json["migration"]])[0]["stage"] == "cut_over"
        shown = await agents("show", "Kit")
        assert f"jsonrpc-2.0 at {url}" in shown.out
        back = await agents.migrate("rollback", "Kit", "--note", "only a drill")
        assert "stage   rolled back" in back.out
        status = await agents.migrate("status", "Kit")
        assert "note   only a drill" in status.out
        history = await agents.migrate("history", "Kit")
        lines = [line.split() for line in history.out.splitlines()[1:]]
        assert [line[0] for line in lines] == sorted((line[0] for line in lines), key=int, reverse=True)
        assert "ann" in lines[0]


async def test_everything_that_is_in_the_way_of_all_is_listed_and_nothing_is_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # On a server of its own: it acts on all agents.
    async with (
        running_system(tmp_path) as system,
        served(kit()) as good,
        ScriptedAgent(simple_success("old")) as old,
    ):
        agents = Commands(system.url, capsys)
        for name, url in (("Good", good), ("Old", old.url)):
            await agents("create", name, url, "--protocol", "simple-a2a")
            await agents.migrate("ready", name, "--to", "jsonrpc-2.0", "--note", "deployed")
        refused = await agents.migrate("cutover", "--all")
        assert refused.code == Exit.CONFLICT
        assert "The check of the target failed" in refused.err
        assert "(Old)" in refused.err
        assert "--force --note" in refused.err
        forced = await agents.migrate("cutover", "--all", "--force", "--note", "a drill")
        assert forced.code == Exit.OK, forced
        again = await agents.migrate("check", "Old", "--json")
        assert again.code == Exit.INVALID
        outcome = await agents.migrate("rollback", "--all", "--note", "the drill is over")
        assert outcome.code == Exit.OK
        assert "rolled back" in outcome.out


async def test_agents_that_are_finished_are_left_alone_and_no_failure_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = FakeClock()
    async with running_system(tmp_path, clock=clock) as system, served(kit()) as url:
        agents = Commands(system.url, capsys)
        for name in ("Done", "Moved"):
            await agents("create", name, url, "--protocol", "simple-a2a")
            await agents.migrate("ready", name, "--to", "jsonrpc-2.0", "--note", "deployed")
        cut = await agents.migrate("cutover", "Done")
        assert cut.code == Exit.OK, cut
        early = await agents.migrate("finish", "--all")
        assert (early.code, "rejected for Done: " in early.err) == (Exit.CONFLICT, True), early
        clock.advance(timedelta(seconds=6))
        # The other one has not been cut over, and is no part of it.
        finished = await agents.migrate("finish", "--all")
        assert (finished.code, "Moved" in finished.err) == (Exit.OK, False), finished
        alone = await agents.migrate("rollback", "--all", "--note", "a drill")
        assert (alone.code, "skipped Done: " in alone.err) == (Exit.CONFLICT, True), alone
        await agents.migrate("cutover", "Moved")
        for _ in range(2):
            back = await agents.migrate("rollback", "--all", "--note", "a drill")
            assert (back.code, "skipped Done: " in back.err) == (Exit.OK, True), back
            assert "Moved  rolled back" in back.out
        assert (await agents("remove", "Moved")).code == Exit.OK
        history = await agents.migrate("history", "Moved")
        assert (history.code, "a drill" in history.out) == (Exit.OK, True), history


WRONG: dict[str, tuple[list[str], Exit]] = {
    "neither one nor all": (["cutover"], Exit.USAGE),
    "one and all": (["rollback", "Good", "--all", "--note", "x"], Exit.USAGE),
    "two protocols": (
        ["canary", "Good", "--percent", "1", "--to", "a2a-1.0", "--protocol", "a2a-0.3"],
        Exit.USAGE,
    ),
    "no share": (["canary", "Nobody"], Exit.USAGE),
    "a share that is no number": (["shadow", "Nobody", "--percent", "nan"], Exit.USAGE),
    "an endless share": (["shadow", "Nobody", "--percent", "inf"], Exit.USAGE),
    "less than nothing": (["canary", "Nobody", "--percent", "-1"], Exit.USAGE),
    "more than all": (["canary", "Nobody", "--percent", "100.5"], Exit.USAGE),
    "a limit that is no number": (
        ["canary", "Nobody", "--percent", "1", "--error-rate", "nan"],
        Exit.USAGE,
    ),
    "history of nobody": (["history", "Nobody"], Exit.NOT_FOUND),
    "no reason": (["rollback", "--all"], Exit.USAGE),
    "nobody": (["status", "Nobody"], Exit.NOT_FOUND),
    "nobody to try": (["canary", "Nobody", "--percent", "1"], Exit.NOT_FOUND),
    "nobody to check": (["check", "Nobody"], Exit.INVALID),
}


async def test_wrong_usage_ends_with_its_own_code(agents: Commands) -> None:
    for case, (arguments, code) in WRONG.items():
        result = await agents.migrate(*arguments)
        assert result.code == code, (case, result)
