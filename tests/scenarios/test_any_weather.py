"""Runs in any weather: agents that fail in every way, people who interfere; nothing is stuck, lost or left over."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from structlog.testing import capture_logs

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import (
    Call,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_error,
    jsonrpc_task,
    simple_error,
    simple_success,
)
from trunkline.testing.agents import Hangup, Reply, Scripted

pytestmark = pytest.mark.anyio

RUNS = 120
FINAL = {"COMPLETED", "FAILED", "CANCELLED"}
RETRY: JsonObject = {"max_attempts": 4, "backoff": "fixed", "first_delay": "5ms", "on": ["any"]}
WORKFLOW: JsonObject = {
    "name": "weather",
    "max_parallel": 2,
    "steps": {
        "start": {"agent": "Simple", "retry": RETRY},
        "left": {"agent": "Rpc", "needs": ["start"], "retry": RETRY, "on_error": {"goto": "rescue"}},
        "right": {"agent": "Simple", "needs": ["start"], "retry": RETRY, "on_error": "continue"},
        "once": {"agent": "Rpc", "needs": ["start"], "delivery": "at_most_once"},
        "rescue": {"agent": "Rpc", "retry": RETRY, "context": "none"},
        "end": {"agent": "Simple", "needs": ["left", "right", "once", "rescue"], "retry": RETRY},
    },
}


class Weather:
    """An agent's mood, drawn anew for each call, but the same for the same seed and order of calls."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def simple(self, call: Call) -> Scripted:
        good = simple_success({"n": call.number})(call)
        bad: list[Scripted] = [
            simple_error("no")(call),
            Reply(503),
            Hangup(),
            Reply(200, b"<html>"),
            {"a": 1},
        ]
        return self._random.choice([good, good, good, good, *bad])

    def rpc(self, call: Call) -> Scripted:
        if call.method == "tasks/cancel":
            return self._random.choice([jsonrpc_task("", state="canceled")(call), Hangup(), Reply(500)])
        remote = f"remote-{call.id}"
        task = {
            state: jsonrpc_task(state, state=state, remote_id=remote)(call)
            for state in ("completed", "working", "input-required", "failed", "auth-required")
        }
        bad: list[Scripted] = [task["failed"], jsonrpc_error(-32000, "no")(call), Reply(502), Hangup()]
        return self._random.choice([*[task["completed"]] * 4, task["working"], task["input-required"], *bad])


class Person:
    """Somebody who answers questions, settles doubts, and now and then interferes."""

    def __init__(self, system: RunningSystem, seed: int) -> None:
        self._system = system
        self._random = Random(seed)

    async def look_after(self, run_id: str) -> str:
        """Until the run is over; its end."""
        while True:
            run = await self._system.get(run_id)
            status = str(run["status"])
            if status in FINAL:
                return status
            if self._random.random() < 0.1:
                await self._wish(run_id, self._random.choice(["pause", "resume", "cancel"]))
            if status == "PAUSED":
                await self._wish(run_id, "resume")
            elif status == "WAITING":
                await self._settle(run_id, run)
            else:
                await asyncio.sleep(0.02)

    async def _settle(self, run_id: str, run: JsonObject) -> None:
        steps = run["steps"]
        for step in steps if isinstance(steps, list) else []:
            assert isinstance(step, dict)
            path = f"/runs/{run_id}/steps/{step['name']}"
            if step["status"] == "WAITING":
                await self._post(f"{path}/reply", {"text": "yes"})
            elif step["status"] == "OUTCOME_UNKNOWN":
                outcome = self._random.choice(["succeeded", "failed", "call_again"])
                await self._post(f"{path}/resolve", {"outcome": outcome})

    async def _wish(self, run_id: str, wish: str) -> None:
        await self._post(f"/runs/{run_id}/{wish}")

    async def _post(self, path: str, body: Json = None) -> None:
        answer = await self._system.call("POST", path, body)
        # Too late, or somebody else was faster: that may be.
        assert answer.status in {202, 409}, answer.body


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_run_ends_and_nothing_is_left_behind(system: RunningSystem, seed: int) -> None:
    weather = Weather(seed)
    async with ScriptedAgent(weather.simple) as simple, ScriptedAgent(weather.rpc) as rpc:
        await system.register("Simple", simple.url, protocol="simple-a2a", max_concurrency=5)
        await system.register("Rpc", rpc.url, protocol="jsonrpc-2.0", max_concurrency=7, timeout_ms=20_000)
        await system.save(WORKFLOW)
        with capture_logs() as logs:
            runs = [await system.start("weather", {"n": number}) for number in range(RUNS)]
            people = [Person(system, seed * 1_000 + number) for number in range(RUNS)]
            ends = await asyncio.gather(
                *(person.look_after(run) for person, run in zip(people, runs, strict=True))
            )
    assert set(ends) == FINAL
    crashes = {"call_crashed", "turn_failed", "run_poisoned", "request_failed"}
    assert [line for line in logs if line["event"] in crashes] == []
    assert await system.metric("trunkline_rows_without_wake_reason") == 0
    for queue in ("inbox", "timers", "tasks_queued", "tasks_claimed", "tasks_remote"):
        assert await system.metric("trunkline_queue_depth", queue=queue) == 0, queue
    assert await system.metric("trunkline_calls_in_flight") == 0
    for run_id in runs:
        await assert_consistent(system, run_id)


async def assert_consistent(system: RunningSystem, run_id: str) -> None:
    run = await system.get(run_id)
    events = await system.items(f"/runs/{run_id}/events?limit=1000")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert str(events[-1]["type"]) == f"Run{str(run['status']).capitalize()}"
    assert sum(str(event["type"]) in {"RunCompleted", "RunFailed", "RunCancelled"} for event in events) == 1
    steps = run["steps"]
    assert isinstance(steps, list)
    ended = {"COMPLETED", "FAILED", "SKIPPED", "CANCELLED"}
    assert all(isinstance(step, dict) and step["status"] in ended for step in steps)
