"""Agents that fail in every way and people who interfere, drawn from a seed: the weather that runs have to endure."""

from __future__ import annotations

import asyncio
from random import Random

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import (
    Call,
    RunningSystem,
    jsonrpc_error,
    jsonrpc_task,
    simple_error,
    simple_success,
)
from trunkline.testing.agents import Hangup, Reply, Scripted
from trunkline.testing.system import objects_in

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


class RandomFaults:
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


class RandomOperator:
    """Somebody who answers questions, settles doubts, and now and then interferes."""

    def __init__(self, system: RunningSystem, run_id: str, seed: int) -> None:
        self._system = system
        self._run_id = run_id
        self._random = Random(seed)

    async def look_after(self) -> str:
        """Until the run is over; its end."""
        while True:
            run = await self._system.get(self._run_id)
            status = str(run["status"])
            if status in FINAL:
                return status
            if self._random.random() < 0.1:
                await self._post(self._random.choice(["/pause", "/resume", "/cancel"]))
            if status == "PAUSED":
                await self._post("/resume")
            elif status == "WAITING":
                await self._settle(run)
            else:
                await asyncio.sleep(0.02)

    async def _settle(self, run: JsonObject) -> None:
        for step in objects_in(run["steps"]):
            if step["status"] == "WAITING":
                await self._post(f"/steps/{step['name']}/reply", {"text": "yes"})
            elif step["status"] == "OUTCOME_UNKNOWN":
                outcome = self._random.choice(["succeeded", "failed", "call_again"])
                await self._post(f"/steps/{step['name']}/resolve", {"outcome": outcome})

    async def _post(self, action: str, body: Json = None) -> None:
        answer = await self._system.call("POST", f"/runs/{self._run_id}{action}", body)
        # Too late, or somebody else was faster: that may be.
        assert answer.status in {202, 409}, answer.body


async def assert_nothing_left(system: RunningSystem, runs: list[str]) -> None:
    assert await system.metric("trunkline_rows_without_wake_reason") == 0
    for queue in ("inbox", "timers", "tasks_queued", "tasks_claimed", "tasks_remote"):
        assert await system.metric("trunkline_queue_depth", queue=queue) == 0, queue
    assert await system.metric("trunkline_calls_in_flight") == 0
    for run_id in runs:
        await _assert_consistent(system, run_id)


async def _assert_consistent(system: RunningSystem, run_id: str) -> None:
    run = await system.get(run_id)
    events = await system.items(f"/runs/{run_id}/events?limit=1000")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert str(events[-1]["type"]) == f"Run{str(run['status']).capitalize()}"
    assert sum(str(event["type"]) in {"RunCompleted", "RunFailed", "RunCancelled"} for event in events) == 1
    assert {str(step["status"]) for step in objects_in(run["steps"])} <= {*FINAL, "SKIPPED"}
