"""Who started a run: the key of the request, the topic of a command, and for a child run what its parent says."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.scenarios.api.test_keys import bearer, create_key, guarded_system
from tests.scenarios.test_start_commands import taking

from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, running_system, simple_success
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio

ONE = "{name: one, steps: {a: {agent: A}}}"
ABOVE = "{name: above, steps: {inner: {workflow: one}}}"


@pytest.fixture
async def agent() -> AsyncGenerator[ScriptedAgent]:
    async with ScriptedAgent(simple_success({})) as agent:
        yield agent


async def prepare(system: RunningSystem, agent: ScriptedAgent, headers: dict[str, str] | None = None) -> None:
    registered: JsonObject = {"name": "A", "url": agent.url, "protocol": "simple-a2a"}
    assert (await system.call("POST", "/agents", registered, headers)).status == 201
    for definition in (ONE, ABOVE):
        saved = await system.call("POST", "/workflows", definition.encode(), headers)
        assert saved.status == 201


async def test_a_run_names_the_key_that_started_it(tmp_path: Path, agent: ScriptedAgent) -> None:
    ann, otto = await create_key(tmp_path, "admin", "ann"), await create_key(tmp_path, "operator", "otto")
    async with guarded_system(tmp_path) as system:
        await prepare(system, agent, bearer(ann))
        started = await system.call("POST", "/workflows/one/execute?wait=30", {}, bearer(otto))
        assert started.json["started_by"] == "otto"
        retried = await system.call(
            "POST", f"/runs/{started.json['id']}/retry", {"from_start": True}, bearer(ann)
        )
        assert retried.json["started_by"] == "ann"
        listed = await system.call("GET", "/runs", headers=bearer(otto))
        assert [run["started_by"] for run in objects_in(listed.json["items"])] == ["ann", "otto"]


async def test_a_child_run_names_the_key_that_started_its_parent(
    tmp_path: Path, agent: ScriptedAgent
) -> None:
    ann = await create_key(tmp_path, "admin", "ann")
    async with guarded_system(tmp_path) as system:
        await prepare(system, agent, bearer(ann))
        run = await system.call("POST", "/workflows/above/execute?wait=30", {}, bearer(ann))
        children = await system.call("GET", f"/runs?parent={run.json['id']}", headers=bearer(ann))
    assert [run["started_by"] for run in objects_in(children.json["items"])] == ["ann"]


async def test_without_keys_it_is_not_known_who_started_a_run(tmp_path: Path, agent: ScriptedAgent) -> None:
    async with running_system(tmp_path) as system:
        await prepare(system, agent)
        run = await system.run("one")
    assert run["started_by"] is None


async def test_a_run_that_a_command_started_names_its_topic(tmp_path: Path, agent: ScriptedAgent) -> None:
    async with running_system(tmp_path) as system:
        await prepare(system, agent)
        async with taking(system, tmp_path) as arrivals:
            arrivals.put({"workflow": "one"})
            await arrivals.all_settled()
        (run,) = await system.items("/runs")
    assert run["started_by"] == "kafka:trunkline.commands"
