"""What is known of a run, line by line."""

from __future__ import annotations

import pytest
from tests.resources import read_resource

from trunkline.api.resources.runs import LogPage
from trunkline.jsontypes import Json, decode
from trunkline.testing import RunningSystem, ScriptedAgent, simple_error, simple_success

pytestmark = pytest.mark.anyio

WORKFLOW = """
name: w
steps:
  a: {agent: A, retry: {max_attempts: 2, first_delay: 10ms, on: [agent_reported_error]}}
  b: {agent: A, needs: [a]}
"""


async def finished(system: RunningSystem) -> str:
    """A run whose first step is completed at its second attempt."""
    answers = [simple_error("too busy"), simple_success({}), simple_success({})]
    async with ScriptedAgent(*answers) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        await system.save(WORKFLOW)
        run = await system.run("w")
    assert run["status"] == "COMPLETED", run
    return str(run["id"])


async def test_history_and_wire_are_one_list_in_the_order_of_time(system: RunningSystem) -> None:
    run = await finished(system)
    answer = await system.call("GET", f"/runs/{run}/logs?limit=1000")
    lines = read_resource(LogPage, answer.body)["items"]
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    assert lines[0]["event"] == "RunStarted"
    assert lines[-1]["event"] == "RunCompleted"
    assert [line["attempt"] for line in lines if line["source"] == "wire"] == [1, 2, 1]
    retried = next(line for line in lines if line["event"] == "StepRetryScheduled")
    assert (retried["level"], retried["step"]) == ("warning", "a")
    assert "too busy" in retried["text"]
    begun = next(line for line in lines if line["event"] == "StepStarted")
    assert begun["text"] == "Attempt 1 started: calling A."


async def test_pages_have_every_line_once(system: RunningSystem) -> None:
    run = await finished(system)
    whole: Json = (await system.call("GET", f"/runs/{run}/logs?limit=1000")).json["items"]
    assert await system.items(f"/runs/{run}/logs?limit=1") == whole
    assert await system.items(f"/runs/{run}/logs?limit=3") == whole
    answer = await system.call("GET", f"/runs/{run}/logs?format=lines")
    assert answer.headers["Content-Type"].startswith("application/x-ndjson")
    assert [decode(line) for line in answer.body.splitlines()] == whole


async def test_lines_of_one_step_or_attempt_are_picked(system: RunningSystem) -> None:
    run = await finished(system)
    of_step = await system.items(f"/runs/{run}/logs?step=a&limit=2")
    assert {str(line["step"]) for line in of_step} == {"a"}
    of_attempt = await system.items(f"/runs/{run}/logs?step=a&attempt=2")
    assert {str(line["attempt"]) for line in of_attempt} == {"2"}
    assert await system.items(f"/runs/{run}/logs?step=nothing") == []


async def test_a_run_that_is_not_there_and_a_cursor_that_is_none_are_refused(system: RunningSystem) -> None:
    assert (await system.call("GET", "/runs/nothing/logs")).status == 404
    run = await finished(system)
    assert (await system.call("GET", f"/runs/{run}/logs?cursor=1")).status == 422
