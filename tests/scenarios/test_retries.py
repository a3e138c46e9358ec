"""Failed calls that are made again: which, how often, after which wait, and under which id."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from itertools import count

import pytest

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing import (
    Call,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_error,
    jsonrpc_task,
    simple_error,
    simple_success,
)
from trunkline.testing.agents import Hangup, Reply, Script
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

QUICK: JsonObject = {"max_attempts": 3, "backoff": "fixed", "first_delay": "10ms"}
BUSY = Reply(503, b"busy", {"Content-Type": "text/plain"})


NUMBERS = count(1)


@pytest.fixture
def system(shared_system: RunningSystem) -> RunningSystem:
    """Every test has its own agent and workflow."""
    return shared_system


async def never(call: Call) -> Json:
    await asyncio.Event().wait()
    return None


async def run_one(
    system: RunningSystem, agent: ScriptedAgent, protocol: str, *, step_retry: Json = QUICK, **fields: Json
) -> JsonObject:
    """One run of one step; `fields` are the agent's, a `step_retry` of None is left out."""
    number = next(NUMBERS)
    await system.register(f"Agent {number}", agent.url, protocol=protocol, **fields)
    step: JsonObject = {"agent": f"Agent {number}"}
    if step_retry is not None:
        step["retry"] = step_retry
    await system.save({"name": f"one-{number}", "steps": {"only": step}})
    return await system.run(f"one-{number}")


async def delays(system: RunningSystem, run: JsonObject) -> list[float]:
    """The waits between the attempts, as they were decided, in milliseconds."""
    events = await system.items(f"/runs/{run['id']}/events")
    waits: list[float] = []
    for event in events:
        data = event["data"]
        if event["type"] == "StepRetryScheduled" and isinstance(data, dict):
            at = datetime.fromisoformat(str(event["at"]))
            due = datetime.fromisoformat(str(data["due"]))
            waits.append((due - at) / timedelta(milliseconds=1))
    return waits


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(Hangup(), id="closed without a word"),
        pytest.param(Hangup(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"), id="closed in the answer"),
        pytest.param(never, id="no answer in time"),
    ],
)
@pytest.mark.parametrize(
    ("protocol", "good"), [("simple-a2a", simple_success("ok")), ("jsonrpc-2.0", jsonrpc_task("ok"))]
)
async def test_a_call_without_an_answer_is_repeated_under_the_same_id(
    system: RunningSystem, lost: Script, protocol: str, good: Script
) -> None:
    async with ScriptedAgent(lost, good) as agent:
        run = await run_one(system, agent, protocol, timeout_ms=300)
    assert run["status"] == "COMPLETED"
    assert step_of(run, "only")["attempts"] == 2
    assert [call.id for call in agent.calls] == [f"{run['id']}/only/0"] * 2
    assert agent.calls[0].body == agent.calls[1].body


async def test_an_agent_that_is_down_is_tried_again_until_it_is_there(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("gone")) as before:
        url, port = before.url, before.port
    await system.register("Agent", url, protocol="simple-a2a")
    retry: JsonObject = {**QUICK, "max_attempts": 100, "first_delay": "100ms"}
    await system.save({"name": "one", "steps": {"only": {"agent": "Agent", "retry": retry}}})
    run_id = await system.start("one")
    waiting = await system.wait_for_step(run_id, "only", {"WAITING"})
    waiting_for = waiting["waiting_for"]
    assert isinstance(waiting_for, dict)
    assert waiting_for["kind"] == "retry"
    assert waiting_for["text"] == "The agent cannot be reached: Connection refused."
    assert waiting_for["until"]
    assert error_of(waiting)["code"] == "agent_unreachable"
    async with ScriptedAgent(simple_success("here"), port=port) as agent:
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert [call.id for call in agent.calls] == [f"{run_id}/only/0"]


async def test_an_answered_failure_and_a_lost_answer_count_separately(system: RunningSystem) -> None:
    async with ScriptedAgent(BUSY, Hangup(), BUSY, jsonrpc_task("ok")) as agent:
        run = await run_one(system, agent, "jsonrpc-2.0", step_retry={**QUICK, "max_attempts": 4})
    assert run["status"] == "COMPLETED"
    numbers = [str(call.message["messageId"]).rsplit("/", 1)[1] for call in agent.calls]
    assert numbers == ["0", "1", "1", "2"]


async def test_without_any_policy_three_attempts_are_made_with_growing_waits(system: RunningSystem) -> None:
    async with ScriptedAgent(BUSY) as agent:
        run = await run_one(system, agent, "simple-a2a", step_retry=None)
    assert run["status"] == "FAILED"
    assert error_of(run)["http_status"] == 503
    assert error_of(run)["attempt"] == 3
    assert len(agent.calls) == 3
    first, second = await delays(system, run)
    assert 500 <= first <= 1_000
    assert 1_000 <= second <= 2_000


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [("fixed", [10, 10, 10]), ("linear", [10, 20, 25]), ("exponential", [10, 20, 25])],
)
async def test_the_waits_follow_the_policy(
    system: RunningSystem, backoff: str, expected: list[float]
) -> None:
    policy: JsonObject = {"max_attempts": 4, "backoff": backoff, "first_delay": "10ms"}
    async with ScriptedAgent(BUSY) as agent:
        run = await run_one(
            system, agent, "simple-a2a", step_retry={**policy, "max_delay": "25ms", "jitter": False}
        )
    assert run["status"] == "FAILED"
    assert await delays(system, run) == expected


async def test_an_agent_that_says_when_to_come_back_is_not_called_before(system: RunningSystem) -> None:
    limited = Reply(429, b"slow down", {"Content-Type": "text/plain", "Retry-After": "1"})
    async with ScriptedAgent(limited, simple_success("ok")) as agent:
        run = await run_one(system, agent, "simple-a2a")
    assert run["status"] == "COMPLETED"
    assert await delays(system, run) == [1_000]


@pytest.mark.parametrize(
    ("on", "failure", "calls"),
    [
        pytest.param([404], Reply(404, b"no"), 3, id="a status that is named"),
        pytest.param([404], Reply(503, b"no"), 1, id="a status that is not"),
        pytest.param(["4xx"], Reply(409, b"no"), 3, id="a class of statuses"),
        pytest.param(["no_answer"], Reply(500, b"no"), 1, id="an answer where only silence counts"),
        pytest.param([-32000], jsonrpc_error(-32000, "busy"), 3, id="a JSON-RPC code that is named"),
        pytest.param([-32000], jsonrpc_error(-32603, "broken"), 1, id="a JSON-RPC code that is not"),
        pytest.param(["agent_task_failed"], jsonrpc_task("no", state="failed"), 3, id="an error code"),
        pytest.param(["any"], jsonrpc_task("no", state="rejected"), 3, id="anything"),
    ],
)
async def test_only_what_the_policy_names_is_retried(
    system: RunningSystem, on: list[Json], failure: Script, calls: int
) -> None:
    async with ScriptedAgent(failure) as agent:
        run = await run_one(system, agent, "jsonrpc-2.0", step_retry={**QUICK, "on": on})
    assert run["status"] == "FAILED"
    assert len(agent.calls) == calls
    assert len({str(call.id) for call in agent.calls}) == calls


async def test_the_agents_policy_counts_where_the_step_has_none(system: RunningSystem) -> None:
    policy: JsonObject = {**QUICK, "max_attempts": 2, "on": ["any"]}
    async with ScriptedAgent(simple_error("no")) as agent:
        run = await run_one(system, agent, "simple-a2a", step_retry=None, retry=policy)
    assert run["status"] == "FAILED"
    assert len(agent.calls) == 2


async def test_the_steps_policy_wins_over_the_agents(system: RunningSystem) -> None:
    policy: JsonObject = {**QUICK, "on": ["any"]}
    async with ScriptedAgent(simple_error("no")) as agent:
        run = await run_one(system, agent, "simple-a2a", step_retry={"max_attempts": 1}, retry=policy)
    assert run["status"] == "FAILED"
    assert len(agent.calls) == 1


@pytest.mark.parametrize(
    ("protocol", "said", "message"),
    [
        ("simple-a2a", {"task_id": "x", "status": "error", "output": None, "error": "no paper"}, "no paper"),
        (
            "jsonrpc-2.0",
            {"jsonrpc": "2.0", "id": "x", "error": {"code": -32603, "message": "Internal error: no paper"}},
            "JSON-RPC Error -32603: Internal error: no paper",
        ),
    ],
)
async def test_an_error_in_the_agents_own_dialect_behind_a_500_keeps_its_words_and_is_retried(
    system: RunningSystem, protocol: str, said: dict[str, Json], message: str
) -> None:
    async with ScriptedAgent(Reply(500, encode(said))) as agent:
        run = await run_one(system, agent, protocol)
    assert error_of(run)["message"] == message
    assert error_of(run)["http_status"] == 500
    assert len(agent.calls) == 3
