"""
A zone that is killed with -9, at each point of a call and at any moment: nothing is forgotten, and no id runs twice.

Larger: TRUNKLINE_CHAOS_KILLS=200 pytest tests/crash/test_zone_kills.py; a failure names the seed of its moments, which
TRUNKLINE_CHAOS_SEED sets.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from uuid import uuid4

import aiohttp
import pytest
from tests.crash.crashing_zone import CRASH_POINTS, LONG
from tests.crash.zone_server import RetryingCaller, ZoneServer, reason_of, task_of, zone_on

from trunkline.jsontypes import JsonObject
from trunkline.zones.call_runner import MAX_RUNS

pytestmark = pytest.mark.anyio

KILLS = int(os.environ.get("TRUNKLINE_CHAOS_KILLS", "12"))
SEED = int(os.environ.get("TRUNKLINE_CHAOS_SEED", "5"))
CALLS_PER_LIFE = 8

# What becomes of a call whose zone was killed at a point: why it failed, if it did, and how often it was run.
ONCE: Mapping[str, tuple[str | None, int]] = {
    "before begin": (None, 1),
    "after begin": ("interrupted", 0),
    "in the handler": ("interrupted", 1),
    "before accept": ("interrupted", 1),
    "after accept": ("interrupted", 1),
    "before finish": ("interrupted", 1),
    "after finish": (None, 1),
}
AGAIN: Mapping[str, tuple[str | None, int]] = {
    "before begin": (None, 1),
    "after begin": (None, 1),
    "in the handler": (None, 2),
    "before accept": (None, 2),
    "after accept": (None, 2),
    "before finish": (None, 2),
    "after finish": (None, 1),
}


@pytest.fixture
async def zone(tmp_path: Path) -> AsyncGenerator[ZoneServer]:
    async with zone_on(tmp_path / "data") as server:
        yield server


@pytest.fixture
def caller(zone: ZoneServer, session: aiohttp.ClientSession) -> RetryingCaller:
    return RetryingCaller(session, zone.url)


@pytest.mark.parametrize("method", ["once", "again"])
@pytest.mark.parametrize("injector", CRASH_POINTS)
async def test_a_call_whose_zone_is_killed_has_an_end_and_did_not_run_twice(
    zone: ZoneServer, caller: RetryingCaller, method: str, injector: str
) -> None:
    # Those that are past the first answer need one.
    params: JsonObject = {"name": "work", "seconds": 0.3 if "accept" in injector else 0}
    id_ = str(uuid4())
    zone.injector = injector
    await zone.start()
    assert await caller.ask(id_, method, params) is None
    assert await zone.stopped() == -signal.SIGKILL

    zone.injector = None
    await zone.start()
    end = await caller.end_of(id_, method, params)
    assert (reason_of(end), zone.runs()["work"]) == {"once": ONCE, "again": AGAIN}[method][injector]
    assert await caller.ask(id_, method, params) == end


@pytest.mark.parametrize(("method", "reason", "runs"), [("once", "interrupted", 1), ("again", None, 2)])
async def test_accepted_work_whose_zone_is_killed_is_not_forgotten(
    zone: ZoneServer, caller: RetryingCaller, method: str, reason: str | None, runs: int
) -> None:
    params: JsonObject = {"name": "work", "seconds": 1}
    await zone.start()
    accepted = await caller.ask("1", method, params)
    assert accepted is not None
    task_id = task_of(accepted)
    assert task_id is not None
    await zone.kill()

    await zone.start()
    end = await caller.end_of("1", method, params)
    assert (reason_of(end), zone.runs()["work"]) == (reason, runs)
    asked = await caller.ask("1", "get_task_result", {"task_id": task_id})
    assert asked == end


async def test_accepted_work_that_ended_before_the_kill_keeps_its_result(
    zone: ZoneServer, caller: RetryingCaller
) -> None:
    params: JsonObject = {"name": "work", "seconds": 0.2}
    await zone.start()
    end = await caller.end_of("1", "once", params)
    assert reason_of(end) is None
    await zone.kill()
    await zone.start()
    assert await caller.end_of("1", "once", params) == end
    assert zone.runs()["work"] == 1


async def test_a_caller_that_hangs_up_does_not_end_the_work(zone: ZoneServer, caller: RetryingCaller) -> None:
    params: JsonObject = {"name": "work", "seconds": 1}
    await zone.start()
    first_ask = asyncio.create_task(caller.ask("1", "once", params))
    await _until_run(zone, "work", 1)
    first_ask.cancel()
    assert reason_of(await caller.end_of("1", "once", params)) is None
    assert zone.runs()["work"] == 1


async def test_a_stop_lets_work_end_and_answers_waiting_callers(
    zone: ZoneServer, caller: RetryingCaller
) -> None:
    params: JsonObject = {"name": "work", "seconds": 1}
    await zone.start()
    accepted = await caller.ask("1", "once", params)
    assert accepted is not None
    assert task_of(accepted) is not None
    zone.ask_to_stop()
    assert await zone.stopped() == 0
    await zone.start()
    assert reason_of(await caller.end_of("1", "once", params)) is None
    assert zone.runs()["work"] == 1


@pytest.mark.parametrize(
    ("method", "reason", "runs"),
    [("once", "interrupted", 1), ("again", None, 2), ("block", "interrupted", 1)],
)
async def test_work_that_outlasts_a_stop_delays_no_caller_and_ends(
    zone: ZoneServer, caller: RetryingCaller, method: str, reason: str | None, runs: int
) -> None:
    params: JsonObject = {"name": "work", "seconds": LONG}
    zone.stop_timeout = 0.1
    await zone.start()
    accepted = await caller.ask("1", method, params)
    assert accepted is not None
    task_id = task_of(accepted)
    assert task_id is not None
    zone.ask_to_stop()
    # It would hang here if a handler in a thread kept the process.
    assert await zone.stopped() == 0

    await zone.start()
    if reason is not None:
        assert reason_of(await caller.end_of("1", method, params)) == reason
    else:
        asked = await caller.ask("2", "get_task_result", {"task_id": task_id})
        assert asked is not None
        assert task_of(asked) == task_id
        await _until_run(zone, "work", runs)
    assert zone.runs()["work"] == runs


async def _until_run(zone: ZoneServer, name: str, times: int) -> None:
    async with asyncio.timeout(30):
        while zone.runs()[name] < times:
            await asyncio.sleep(0.01)


@pytest.mark.timeout(300 + 5 * KILLS)
async def test_nothing_is_forgotten_and_nothing_runs_twice_when_a_zone_is_killed_again_and_again(
    zone: ZoneServer, caller: RetryingCaller
) -> None:
    moments = random.Random(SEED)
    ends: dict[str, JsonObject] = {}
    methods: dict[str, str] = {}

    async def see_to_its_end(name: str, method: str, seconds: float) -> None:
        params: JsonObject = {"name": name, "seconds": seconds}
        ends[name] = await caller.end_of(name, method, params)
        again = await caller.end_of(name, method, params)
        assert again == ends[name], f"{name} has two ends, seed {SEED}"

    async with asyncio.TaskGroup() as group:
        for life in range(KILLS):
            await zone.start()
            for number in range(CALLS_PER_LIFE):
                name = f"{life}-{number}"
                methods[name] = ("once", "again", "block")[number % 3]
                group.create_task(see_to_its_end(name, methods[name], moments.choice([0, 0.03, 0.1, 0.4])))
            await asyncio.sleep(moments.uniform(0, 0.6))
            await zone.kill()
        await zone.start()

    runs = zone.runs()
    reasons = {name: reason_of(end) for name, end in ends.items()}
    assert len(ends) == KILLS * CALLS_PER_LIFE
    for name, method in methods.items():
        if method != "again":
            assert runs[name] == 1 if reasons[name] is None else runs[name] <= 1, f"{name}, seed {SEED}"
        elif reasons[name] is not None:
            assert f"begun {MAX_RUNS} times" in str(ends[name]), f"{name}, seed {SEED}"
    assert "interrupted" in reasons.values(), "no call was under way at any kill: nothing was tested"
    assert any(runs[name] > 1 for name in ends), "no call was run again: nothing was tested"
