"""Steps with an output schema, in the whole system: what agents get, what counts as their answer, and what is shown."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing import RunningSystem, ScriptedAgent, jsonrpc_task, simple_success
from trunkline.testing.agents import Call, Scripted
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

SCORE: JsonObject = {
    "type": "object",
    "properties": {"score": {"type": "number"}},
    "required": ["score"],
}


async def run_with(
    system: RunningSystem, agent: ScriptedAgent, protocol: str = "jsonrpc-2.0", **step: Json
) -> JsonObject:
    await system.register("Critic", agent.url, protocol=protocol)
    steps: JsonObject = {"review": {"agent": "Critic", "output_schema": SCORE, **step}}
    await system.save({"name": "scored", "steps": steps})
    return await system.run("scored", {"text": "a poem"})


async def test_an_answer_that_matches_is_taken_as_it_is(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success({"score": 3})) as agent:
        run = await run_with(system, agent, "simple-a2a")
    assert (run["status"], step_of(run, "review")["repairs"]) == ("COMPLETED", 0)
    assert len(agent.calls) == 1


async def test_an_agent_corrects_its_answer_in_the_same_conversation(system: RunningSystem) -> None:
    async with ScriptedAgent(
        jsonrpc_task("I like it a lot."), jsonrpc_task('{"score": 0.9}', remote_id="remote-2")
    ) as agent:
        run = await run_with(system, agent)
        events = await system.items(f"/runs/{run['id']}/events")
    step = step_of(run, "review")
    assert run["status"] == "COMPLETED"
    assert (step["attempts"], step["repairs"]) == (1, 1)
    assert isinstance(step["output"], dict)
    assert step["output"]["data"] == {"score": 0.9}
    first, second = agent.calls
    assert second.message["contextId"] == "context-1"
    assert "taskId" not in second.message
    assert second.message["messageId"] != first.message["messageId"]
    assert "output.data is missing" in encode(second.message["parts"]).decode()
    (asked,) = [event for event in events if event["type"] == "StepRepairRequested"]
    assert isinstance(asked["data"], dict)
    assert (asked["data"]["repair"], asked["data"]["errors"]) == (
        1, ["output.data is missing: the answer has no JSON"],
    )  # fmt: skip


async def test_an_answer_that_stays_wrong_fails_with_the_errors(system: RunningSystem) -> None:
    wrong = jsonrpc_task('{"score": "high"}')
    async with ScriptedAgent(wrong) as agent:
        run = await run_with(system, agent)
    assert run["status"] == "FAILED"
    error = error_of(run)
    assert error["code"] == "output_invalid"
    assert error["detail"] == {"errors": ['output.data.score: "high" is not of type "number"']}
    assert "asked 1 time to correct it" in str(error["message"])
    assert len(agent.calls) == 2


async def test_json_in_a_code_fence_is_the_data(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_task('Here:\n```json\n{"score": 3}\n```\nBye!')) as agent:
        run = await run_with(system, agent)
    step = step_of(run, "review")
    assert isinstance(step["output"], dict)
    assert step["output"]["data"] == {"score": 3}
    assert step["warnings"] == ["output.data was found inside the text of the answer"]
    assert len(agent.calls) == 1


async def test_items_are_corrected_one_by_one(system: RunningSystem) -> None:
    def answer(call: Call) -> Scripted | Awaitable[Scripted]:
        corrects = "Your last answer" in encode(call.body).decode()
        script = simple_success({"score": 1} if corrects else {})
        return script(call) if callable(script) else script

    async with ScriptedAgent(answer) as agent:
        run = await run_with(system, agent, "simple-a2a", for_each={"items": [1, 2, 3], "limit": 2})
    assert run["status"] == "COMPLETED"
    assert len(agent.calls) == 6


async def test_a_large_answer_is_checked_and_kept_whole(system: RunningSystem) -> None:
    padding = "x" * 300_000
    async with ScriptedAgent(
        simple_success({"score": "high", "padding": padding}),
        simple_success({"score": 1, "padding": padding}),
    ) as agent:
        run = await run_with(system, agent, "simple-a2a")
    step = step_of(run, "review")
    assert isinstance(step["output"], dict)
    assert step["output"]["data"] == {"score": 1, "padding": padding}
    # What the agent gets back of its own answer is limited.
    assert len(encode(agent.calls[1].body)) < 10_000


async def test_where_the_data_is_the_output_the_output_is_checked(system: RunningSystem) -> None:
    async with ScriptedAgent(
        jsonrpc_task("none"), jsonrpc_task('{"score": 2}', remote_id="remote-2")
    ) as agent:
        await system.register(
            "Critic", agent.url, protocol="jsonrpc-2.0", protocol_config={"output_mode": "data"}
        )
        await system.save(
            {"name": "scored", "steps": {"review": {"agent": "Critic", "output_schema": SCORE}}}
        )
        run = await system.run("scored", {"text": "a poem"})
    assert (run["status"], run["output"]) == ("COMPLETED", {"score": 2})
