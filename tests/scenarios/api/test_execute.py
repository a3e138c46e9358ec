"""Starting runs over REST."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import aiohttp
import pytest
from tests.resources import as_resource, read_resource

from trunkline.api.resources.runs import RunResource
from trunkline.jsontypes import Json
from trunkline.testing import RunningSystem, ScriptedAgent, simple_success
from trunkline.testing.agents import Call

pytestmark = pytest.mark.anyio

WORKFLOW = """
name: w
input: {type: object, properties: {query: {type: string}}}
steps:
  a: {agent: A}
"""
# A loop, a child run, a step that is skipped, and with the wrong input a failure and steps that never begin.
MANY_STEPS = """
name: many
steps:
  each: {agent: A, for_each: {items: "${ input.numbers }"}}
  child: {workflow: w, needs: [each], input: {query: x}}
  never: {agent: A, needs: [each], when: "false"}
  last: {agent: A, needs: [child]}
"""


@pytest.fixture
async def agent(system: RunningSystem) -> AsyncGenerator[ScriptedAgent]:
    async with ScriptedAgent(simple_success({"text": "done"})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        await system.save(WORKFLOW)
        yield agent


async def test_a_run_is_accepted_with_its_place(system: RunningSystem, agent: ScriptedAgent) -> None:
    headers = {"X-Correlation-ID": "order-7"}
    answer = await system.call("POST", "/workflows/w/execute", {"query": "x"}, headers)
    assert answer.status == 202
    run = read_resource(RunResource, answer.body)
    assert answer.headers["Location"] == f"/api/v1/runs/{run['id']}"
    assert (run["input"], run["correlation_id"], run["workflow"]["version"]) == ({"query": "x"}, "order-7", 1)
    assert [step["name"] for step in run["steps"]] == ["a"]
    finished = as_resource(RunResource, await system.wait_for(run["id"]))
    assert finished["status"] == "COMPLETED"
    assert agent.calls[0].headers["X-Correlation-ID"] == "order-7"


async def test_a_run_that_is_waited_for_is_answered_finished(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    answer = await system.call("POST", "/workflows/w/execute?wait=60", {})
    assert answer.status == 200
    run = read_resource(RunResource, answer.body)
    assert (run["status"], run["output"]) == ("COMPLETED", {"text": "done", "data": {"text": "done"}})
    assert answer.headers["Location"] == f"/api/v1/runs/{run['id']}"


async def test_a_client_that_waits_is_answered_with_what_is_stored(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    await system.save(MANY_STEPS)
    inputs: list[tuple[str, Json]] = [
        ("w", {"query": "x"}),
        ("many", {"numbers": [1, 2]}),
        ("many", {}),
    ]
    for workflow, run_input in inputs:
        answer = await system.call("POST", f"/workflows/{workflow}/execute?wait=60", run_input)
        assert answer.status == 200
        assert answer.json == await system.get(str(answer.json["id"]))


async def test_a_run_that_ends_as_it_begins_is_answered_finished(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    await system.save("{name: nothing, steps: {a: {agent: A, when: 'false'}}, output: done}")
    for path in ("execute?wait=60", "execute?wait=0"):
        answer = await system.call("POST", f"/workflows/nothing/{path}", {})
        assert answer.json["status"] == "COMPLETED" or path.endswith("=0")
        finished = await system.wait_for(str(answer.json["id"]))
        assert finished["output"] == "done"


async def test_when_the_time_is_up_the_run_goes_on(system: RunningSystem, agent: ScriptedAgent) -> None:
    gate = asyncio.Event()

    async def later(call: Call) -> Json:
        await gate.wait()
        return simple_success(1)(call)

    agent.script(later)
    answer = await system.call("POST", "/workflows/w/execute?wait=0.01", {})
    assert answer.status == 202
    assert answer.json["finished_at"] is None
    gate.set()
    assert (await system.wait_for(str(answer.json["id"])))["status"] == "COMPLETED"


async def test_a_client_that_stops_waiting_leaves_its_run_alone(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    called, gate = asyncio.Event(), asyncio.Event()

    async def later(call: Call) -> Json:
        called.set()
        await gate.wait()
        return simple_success(1)(call)

    agent.script(later)
    waiting = asyncio.ensure_future(system.call("POST", "/workflows/w/execute?wait=60", {}))
    await called.wait()
    waiting.cancel()
    gate.set()
    run_id = str(agent.calls[0].id).partition("/")[0]
    assert (await system.wait_for(run_id))["status"] == "COMPLETED"
    assert len(agent.calls) == 1


@pytest.mark.parametrize("body", [b"", b"{}"])
async def test_an_empty_body_is_an_empty_input(
    system: RunningSystem, agent: ScriptedAgent, body: bytes
) -> None:
    answer = await system.call("POST", "/workflows/w/execute?wait=60", body)
    assert (answer.status, answer.json["input"]) == (200, {})


async def test_an_input_that_does_not_fit_starts_nothing(system: RunningSystem, agent: ScriptedAgent) -> None:
    answer = await system.call("POST", "/workflows/w/execute", {"query": 7})
    assert answer.status == 422
    errors = answer.json["errors"]
    assert isinstance(errors, list)
    assert [error["path"] for error in errors if isinstance(error, dict)] == ["input.query"]
    assert (await system.call("GET", "/runs")).json["items"] == []


async def test_a_run_is_pinned_to_the_version_that_it_asks_for(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    await system.save(WORKFLOW + "description: second\n")
    latest = await system.call("POST", "/workflows/w/execute?wait=60", {})
    first = await system.call("POST", "/workflows/w/execute?wait=60&version=1", {})
    assert [answer.json["workflow"] for answer in (latest, first)] == [
        {"name": "w", "version": 2},
        {"name": "w", "version": 1},
    ]
    assert (await system.call("POST", "/workflows/w/execute?version=3", {})).status == 404


async def test_an_idempotency_key_starts_one_run(system: RunningSystem, agent: ScriptedAgent) -> None:
    key = {"Idempotency-Key": "order-7"}
    first = await system.call("POST", "/workflows/w/execute", {"query": "x"}, key)
    run_id = first.json["id"]
    again = await system.call("POST", "/workflows/w/execute?wait=60", {"query": "x"}, key)
    late = await system.call("POST", "/workflows/w/execute", {"query": "x"}, key)
    other = await system.call("POST", "/workflows/w/execute", {"query": "y"}, key)
    assert [answer.status for answer in (first, again, late, other)] == [202, 200, 200, 422]
    assert again.json["id"] == late.json["id"] == run_id
    assert str(run_id) in str(other.json["detail"])
    assert len(agent.calls) == 1


async def test_an_idempotency_key_belongs_to_one_workflow(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    await system.save(WORKFLOW.replace("name: w", "name: v"))
    key = {"Idempotency-Key": "order-7"}
    runs = [await system.start(name, {"query": name}, key) for name in ("w", "v")]
    assert runs[0] != runs[1]
    for run in runs:
        await system.wait_for(run)


async def test_the_command_of_the_seeds_starts_a_run_without_a_json_content_type(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    # curl -X POST …/execute -d '{"query": "What can you do?"}'
    workflow_id = (await system.call("GET", "/workflows/w")).json["id"]
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{system.url}/api/v1/workflows/{workflow_id}/execute",
            data=b'{"query": "What can you do?"}',
            headers={"Content-Type": "application/x-www-form-urlencoded", "User-Agent": "curl/8.5.0"},
        ) as response,
    ):
        assert response.status == 202
        run = read_resource(RunResource, await response.read())
    assert run["input"] == {"query": "What can you do?"}
    await system.wait_for(run["id"])
