"""Moving to another store by `export` and `import`: ids stay, unfinished runs go on, the source is only read."""

from __future__ import annotations

import asyncio
import gzip
import stat
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from trunkline.cli.app import run_command_line
from trunkline.jsontypes import Json, JsonObject
from trunkline.stores.sqlite import open_sqlite
from trunkline.testing import (
    Call,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_task,
    running_system,
    simple_success,
)
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

SECRET: JsonObject = {"auth_type": "bearer", "auth_config": {"token": "the-token-of-the-agent"}}
TWO: JsonObject = {
    "name": "two",
    "steps": {"first": {"agent": "First"}, "second": {"agent": "Second", "input": "${ steps.first.output }"}},
    "output": "${ steps.second.output }",
}
ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent"}}}
ONCE: JsonObject = {"name": "once", "steps": {"only": {"agent": "Agent", "delivery": "at_most_once"}}}

WITHOUT_SECRET = ("trunkline_queue_depth", "tasks_without_secret")


async def never(call: Call) -> Json:
    await asyncio.Event().wait()
    return None


class StoreLocation:
    """A store, and the settings that choose it."""

    def __init__(self, data: Path, **settings: str) -> None:
        self.data = data
        self.settings = settings

    def running(self) -> AbstractAsyncContextManager[RunningSystem]:
        # Typed loosely: its settings are those of `up`.
        settings: dict[str, Any] = dict(self.settings)
        return running_system(self.data, **settings)

    async def command(self, name: str, file: Path) -> int:
        with pytest.MonkeyPatch.context() as patch:
            for setting, value in self.settings.items():
                patch.setenv(f"TRUNKLINE_{setting.upper()}", value)
            return await asyncio.to_thread(run_command_line, [name, str(file), "--data", str(self.data)])


def sqlite(data: Path) -> StoreLocation:
    """Whatever the environment says."""
    return StoreLocation(data, store=f"sqlite:///{data}/trunkline.db", broker="memory://")


@pytest.fixture(params=["from SQLite", "to SQLite"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[StoreLocation, StoreLocation]:
    """A source and a target, one of them on the backends of the scenario."""
    ours, other = StoreLocation(tmp_path / "ours"), sqlite(tmp_path / "sqlite")
    return (other, ours) if request.param == "from SQLite" else (ours, other)


async def move(source: StoreLocation, target: StoreLocation, file: Path) -> None:
    assert await source.command("export", file) == 0
    assert await target.command("import", file) == 0


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """The test's own time limit ends a vain wait."""
    while not await condition():
        await asyncio.sleep(0.02)


async def start_one(system: RunningSystem, agent: ScriptedAgent, workflow: JsonObject, **fields: Json) -> str:
    await system.register("Agent", agent.url, **{"protocol": "simple-a2a", **fields})
    await system.save(workflow)
    return await system.start(str(workflow["name"]), {"query": "weather"}, {"Idempotency-Key": "a key"})


async def test_an_unfinished_run_goes_on_in_the_other_store_once_its_secret_is_set(
    places: tuple[StoreLocation, StoreLocation], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = places
    async with ScriptedAgent(simple_success("one")) as first, ScriptedAgent(never) as second:
        async with source.running() as system:
            await system.register("First", first.url, protocol="simple-a2a")
            await system.register("Second", second.url, protocol="simple-a2a", **SECRET)
            await system.save(TWO)
            run_id = await system.start("two", {"n": 1}, {"Idempotency-Key": "a key"})
            await second.called()
            events = await system.items(f"/runs/{run_id}/events")
            workflow = (await system.call("GET", "/workflows/two")).json
            agent = (await system.call("GET", "/agents/Second")).json
        await move(source, target, tmp_path / "file")
        assert "  Second" in capsys.readouterr().err.splitlines()
        second.script(simple_success("two"))
        async with target.running() as system:
            assert (await system.items(f"/runs/{run_id}/events"))[: len(events)] == events
            assert (await system.call("GET", "/workflows/two")).json == workflow
            assert (await system.call("GET", "/agents/Second")).json["id"] == agent["id"]

            async def waits() -> bool:
                return await system.metric(WITHOUT_SECRET[0], queue=WITHOUT_SECRET[1]) == 1

            await until(waits)
            assert len(second.calls) == 1
            assert (await system.call("PATCH", "/agents/Second", SECRET)).status == 200
            run = await system.wait_for(run_id)
            again = await system.start("two", {"n": 1}, {"Idempotency-Key": "a key"})
    assert (run["status"], run["output"]) == ("COMPLETED", {"text": "two"})
    assert again == run_id
    assert len(first.calls) == 1
    assert [call.headers["Authorization"] for call in second.calls] == ["Bearer the-token-of-the-agent"] * 2


async def test_an_agent_that_has_taken_a_task_is_asked_from_the_other_store(
    places: tuple[StoreLocation, StoreLocation], tmp_path: Path
) -> None:
    source, target = places
    async with ScriptedAgent(jsonrpc_task("", state="working", remote_id="r-1")) as agent:
        async with source.running() as system:
            run_id = await start_one(system, agent, ONE, protocol="jsonrpc-2.0")
            await agent.called_for("tasks/get")
        agent.script(jsonrpc_task("Sunny", remote_id="r-1"))
        await move(source, target, tmp_path / "file")
        async with target.running() as system:
            run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert [call.method for call in agent.calls].count("message/send") == 1


async def test_a_call_that_must_not_be_repeated_is_in_doubt_in_the_other_store(
    places: tuple[StoreLocation, StoreLocation], tmp_path: Path
) -> None:
    source, target = places
    async with ScriptedAgent(never) as agent:
        async with source.running() as system:
            run_id = await start_one(system, agent, ONCE)
            await agent.called()
        await move(source, target, tmp_path / "file")
        async with target.running() as system:
            run = await system.wait_for(run_id, {"WAITING"})
    assert step_of(run, "only")["status"] == "OUTCOME_UNKNOWN"
    assert len(agent.calls) == 1


async def test_what_is_finished_reads_the_same_in_the_other_store(
    places: tuple[StoreLocation, StoreLocation], tmp_path: Path
) -> None:
    source, target = places
    paths = ["/runs/{}/events", "/runs/{}/wire", "/agents", "/workflows", "/runs"]

    async def read(system: RunningSystem, run_id: str) -> list[object]:
        lists = [await system.items(path.format(run_id)) for path in paths]
        return [await system.get(run_id), *lists]

    async with ScriptedAgent(simple_success({"text": "ü \u0000"})) as agent:
        async with source.running() as system:
            run_id = await start_one(system, agent, ONE)
            await system.wait_for(run_id)
            before = await read(system, run_id)
        await move(source, target, tmp_path / "file")
        async with target.running() as system:
            assert await read(system, run_id) == before
            # Numbers of rows go on where they were.
            assert (await system.run("one", {"query": "snow"}))["status"] == "COMPLETED"


async def test_the_source_is_for_reading_only_and_can_be_exported_again(
    places: tuple[StoreLocation, StoreLocation], tmp_path: Path
) -> None:
    source, _ = places
    async with ScriptedAgent(never) as agent:
        async with source.running() as system:
            run_id = await start_one(system, agent, ONE)
            await agent.called()
        assert await source.command("export", tmp_path / "file") == 0
        async with source.running() as system:
            run = await system.get(run_id)
            assert run["status"] == "RUNNING"
            refused = [
                await system.call("POST", "/workflows/one/execute", {}),
                await system.call("POST", f"/runs/{run_id}/cancel"),
                await system.call("DELETE", "/agents/Agent"),
                await system.call("POST", "/workflows", b"name: x\nsteps: {a: {agent: A}}"),
            ]
        assert len(agent.calls) == 1
    assert [answer.status for answer in refused] == [409] * 4
    assert all("was exported at 20" in answer.body.decode() for answer in refused)
    assert await source.command("import", tmp_path / "file") == 4
    assert await source.command("export", tmp_path / "again") == 0
    target = sqlite(tmp_path / "target")
    assert await target.command("import", tmp_path / "again") == 0
    async with target.running() as system:
        assert (await system.get(run_id))["id"] == run_id


@pytest.mark.parametrize("name", ["export", "import"])
async def test_a_store_that_is_in_use_is_neither_exported_nor_imported_into(
    places: tuple[StoreLocation, StoreLocation], tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = places
    file = tmp_path / "file"
    async with ScriptedAgent(simple_success("ok")) as agent, source.running() as system:
        await start_one(system, agent, ONE)
        if name == "export":
            assert await source.command("export", file) == 4
            assert not file.exists()
        else:
            async with target.running():
                pass
            assert await target.command("export", file) == 0
            assert await source.command("import", file) == 4
        assert "fix" in capsys.readouterr().err
        assert (await system.run("one", {}))["status"] == "COMPLETED"


# --- the file


async def exported(folder: Path) -> Path:
    source, file = sqlite(folder / "source"), folder / "file"
    async with ScriptedAgent(simple_success("ok")) as agent, source.running() as system:
        await system.wait_for(await start_one(system, agent, ONE, **SECRET))
    assert await source.command("export", file) == 0
    return file


# From here on it is about the file, which is the same from every store.
@pytest.mark.embedded_only
async def test_a_file_that_is_cut_or_changed_is_refused_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, target = await exported(tmp_path), sqlite(tmp_path / "target")
    whole = file.read_bytes()
    content = gzip.decompress(whole)
    damaged = [
        b"",
        whole[: len(whole) // 2],
        whole[:-1],
        content,
        gzip.compress(b""),
        gzip.compress(content[:-1]),
        # Without its trailer, and with one letter changed in the middle.
        gzip.compress(content[: content.rindex(b"trailer") - 6]),
        gzip.compress(content.replace(b"COMPLETED", b"COMPLETEX", 1)),
        b"These are my notes.",
    ]
    for number, data in enumerate(damaged):
        broken = tmp_path / f"broken-{number}"
        broken.write_bytes(data)
        assert await target.command("import", broken) == 7
        assert "is not a complete archive" in capsys.readouterr().err
    assert await target.command("import", file) == 0
    assert await target.command("import", file) == 4


@pytest.mark.embedded_only
async def test_a_file_of_another_version_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = await exported(tmp_path)
    content = gzip.decompress(file.read_bytes()).replace(b"trunkline-export\x01", b"trunkline-export\x02", 1)
    file.write_bytes(gzip.compress(content))
    assert await sqlite(tmp_path / "target").command("import", file) == 7
    assert "a different version of Trunkline" in capsys.readouterr().err


@pytest.mark.embedded_only
async def test_no_secret_is_in_the_file_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    file = await exported(tmp_path)
    async with open_sqlite(tmp_path / "source" / "trunkline.db") as store:
        agent = await store.agents.get("Agent")
    assert agent is not None
    assert agent.secret is not None
    content = gzip.decompress(file.read_bytes())
    assert agent.url.encode() in content
    assert agent.secret not in content
    assert b"the-token-of-the-agent" not in content
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.embedded_only
async def test_files_and_stores_that_are_not_as_they_should_be_are_refused(tmp_path: Path) -> None:
    file = await exported(tmp_path)
    source, target = sqlite(tmp_path / "source"), sqlite(tmp_path / "target")
    assert await source.command("export", file) == 4
    assert await source.command("export", tmp_path / "no such folder" / "file") == 6
    assert await sqlite(tmp_path / "nothing").command("export", tmp_path / "other") == 3
    assert not (tmp_path / "nothing").exists()
    assert await target.command("import", tmp_path / "nobody") == 3
    async with target.running() as system:
        await system.register("A", "http://127.0.0.1:1")
    assert await target.command("import", file) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "source", "target"]
