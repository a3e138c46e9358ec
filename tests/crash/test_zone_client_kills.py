"""
A caller that is killed with -9 while its client sends, waits or asks, and comes again with the same ids.

Nothing is run twice and nothing is forgotten: every call has the end that it would have had. Larger:
TRUNKLINE_CHAOS_KILLS=200 pytest tests/crash/test_zone_client_kills.py; TRUNKLINE_CHAOS_SEED sets the moments.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from tests.crash.process_instances import ROOT
from tests.crash.zone_client_caller import CRASH_POINT, CRASH_POINTS
from tests.crash.zone_server import ZoneServer, zone_on

pytestmark = pytest.mark.anyio

KILLS = int(os.environ.get("TRUNKLINE_CHAOS_KILLS", "6"))
SEED = int(os.environ.get("TRUNKLINE_CHAOS_SEED", "5"))
CALLS = 20
# Only a caller that hangs takes so long.
TIMEOUT_SECONDS = 90


@pytest.fixture
async def zone(tmp_path: Path) -> AsyncGenerator[ZoneServer]:
    async with zone_on(tmp_path / "data") as server:
        yield server


class CallerState:
    """What a caller keeps before it calls: the ids."""

    def __init__(self, path: Path, names: Sequence[str], seconds: Sequence[float]) -> None:
        self.path = path
        self.names = names
        lines = [f"{uuid4()} {name} {took}" for name, took in zip(names, seconds, strict=True)]
        path.write_text("\n".join(lines))


@asynccontextmanager
async def calling(
    url: str, method: str, calls_file: CallerState, injector: str | None = None
) -> AsyncGenerator[Process]:
    variables = {**os.environ, CRASH_POINT: injector} if injector is not None else dict(os.environ)
    command = (sys.executable, "-m", "tests.crash.zone_client_caller", url, method, str(calls_file.path))
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, cwd=ROOT, env=variables)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def ends_of(process: Process) -> dict[str, str]:
    """How each call has ended, by the word of a caller that was let live."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        said, _ = await process.communicate()
    assert process.returncode == 0
    lines = [line.split() for line in said.decode().splitlines() if line != "calling"]
    ends = {name: end for name, end in lines}  # noqa: C416 - each line has two words, and that is checked here
    assert len(ends) == len(lines)
    return ends


@pytest.mark.parametrize("injector", CRASH_POINTS)
async def test_a_caller_that_was_killed_gets_the_same_work_with_the_same_id(
    zone: ZoneServer, tmp_path: Path, injector: str
) -> None:
    await zone.start()
    calls_file = CallerState(tmp_path / "calls_file", ["work"], [0.3])
    async with calling(zone.url, "once", calls_file, injector) as crashing:
        await crashing.communicate()
        assert crashing.returncode == -signal.SIGKILL
    async with calling(zone.url, "once", calls_file) as again:
        assert await ends_of(again) == {"work": "success"}
    async with calling(zone.url, "once", calls_file) as once_more:
        assert await ends_of(once_more) == {"work": "success"}
    assert zone.runs() == {"work": 1}


@pytest.mark.timeout(300 + 10 * KILLS)
async def test_callers_killed_again_and_again_run_nothing_twice_and_forget_nothing(
    zone: ZoneServer, tmp_path: Path
) -> None:
    moments = random.Random(SEED)
    names = [f"work-{number}" for number in range(CALLS)]
    calls_file = CallerState(
        tmp_path / "calls_file", names, [moments.choice([0, 0.03, 0.2, 1]) for _ in names]
    )
    await zone.start()
    for _ in range(KILLS):
        await _killed(zone, calls_file, moments.uniform(0, 0.5))
    async with calling(zone.url, "once", calls_file) as last:
        assert await ends_of(last) == dict.fromkeys(names, "success"), f"seed {SEED}"
    assert zone.runs() == dict.fromkeys(names, 1), f"seed {SEED}"


@pytest.mark.timeout(300 + 20 * KILLS)
async def test_callers_and_zone_killed_again_and_again_run_nothing_twice_and_forget_nothing(
    zone: ZoneServer, tmp_path: Path
) -> None:
    moments = random.Random(SEED)
    names = [f"work-{number}" for number in range(CALLS)]
    calls_file = CallerState(
        tmp_path / "calls_file", names, [moments.choice([0, 0.03, 0.2, 1]) for _ in names]
    )
    for kills in range(KILLS):
        await zone.start()
        await _killed(zone, calls_file, moments.uniform(0, 0.5))
        if kills % 2:
            await zone.kill()
        else:
            zone.ask_to_stop()
            assert await zone.stopped() == 0
    # The caller comes first: there is nobody yet.
    async with calling(zone.url, "once", calls_file) as last:
        assert last.stdout is not None
        assert await last.stdout.readline() == b"calling\n"
        await zone.start()
        ends = await ends_of(last)
    assert set(ends) == set(names)
    assert set(ends.values()) <= {"success", "interrupted"}, f"seed {SEED}: {ends}"
    runs = zone.runs()
    assert max(runs.values()) == 1, f"seed {SEED}: {runs}"
    assert {name for name in names if ends[name] == "success"} <= set(runs), f"seed {SEED}"


async def _killed(zone: ZoneServer, calls_file: CallerState, after_seconds: float) -> None:
    async with calling(zone.url, "once", calls_file) as caller, asyncio.timeout(TIMEOUT_SECONDS):
        assert caller.stdout is not None
        assert await caller.stdout.readline() == b"calling\n"
        await asyncio.sleep(after_seconds)
