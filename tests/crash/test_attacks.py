"""
Attacks and heavy loads on a real process: no run is lost, and its memory stays within what is configured.

The figures are printed: peak memory, the longest time of `/livez`, runs lost. At full size: `make chaos PART=attacks`.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from tests.crash.attack_target import AMPLE_SECONDS, Target
from tests.crash.attacks import (
    ANSWERS,
    ATTACKS,
    BUDGET_BYTES,
    MAX_MEMORY_BYTES,
    MEGABYTE,
    PUBLIC_URL,
    attackers,
)
from tests.crash.report import write_figures
from tests.crash.server import server_on
from tests.crash.watched_server import pauses_in

pytestmark = pytest.mark.anyio


async def test_no_attack_loses_a_run_or_takes_more_memory_than_configured(tmp_path: Path) -> None:
    flags = ("--max-memory-in-flight", str(BUDGET_BYTES), "--max-connections", "200")
    flags += ("--max-connections-per-address", "150", "--max-body-memory", str(BUDGET_BYTES))
    flags += ("--public-url", PUBLIC_URL)
    pauses = tmp_path / "pauses"
    watched = (sys.executable, "-m", "tests.crash.watched_server", str(pauses))
    async with (
        server_on(tmp_path / "data", *flags, program=watched) as server,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        AsyncExitStack() as stack,
        asyncio.timeout(AMPLE_SECONDS + ANSWERS * 10),
    ):
        await server.start()
        target = Target(server, session)
        await stack.enter_async_context(attackers(target))
        lines: list[str] = []
        for attack in ATTACKS:
            target.longest_livez_ms = 0.0
            before = len(pauses_in(pauses))
            stopped = threading.Event()
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(asyncio.to_thread(target.watch, stopped))
                others = group.create_task(target.run_good_ones())
                try:
                    await attack(target)
                finally:
                    stopped.set()
                    others.cancel()
                await watching
            peak = target.peak_memory_bytes()
            paused = max((pause.cpu_ms for pause in pauses_in(pauses)[before:]), default=0.0)
            lines.append(
                f"{attack.__name__:22} peak memory {peak // MEGABYTE} MB, "
                f"longest /livez {target.longest_livez_ms:.0f} ms, "
                f"longest pause of the event loop {paused:.0f} ms of CPU time"
            )
            write_figures_of(target, attack.__name__, peak, paused)
        lines += [f"{name}: {figure}" for name, figure in target.figures.items()]
        sys.stdout.write(
            "\n".join((*lines, f"runs lost: {target.lost_runs}, good runs: {target.good_runs}\n"))
        )
        assert target.lost_runs == 0
        assert target.peak_memory_bytes() < MAX_MEMORY_BYTES, lines
        # The same after a restart.
        await server.kill()
        await server.start()
        await target.run("good")
        assert target.peak_memory_bytes() < MAX_MEMORY_BYTES
        assert target.lost_runs == 0


_FIGURES: dict[str, int | float] = {}


def write_figures_of(target: Target, attack: str, peak_bytes: int, paused_ms: float) -> None:
    _FIGURES.update(target.figures)
    _FIGURES[f"longest pause of the loop, CPU ms, during {attack}"] = round(paused_ms)
    _FIGURES[f"peak memory, MB, after {attack}"] = peak_bytes // MEGABYTE
    _FIGURES[f"longest /livez, ms, during {attack}"] = round(target.longest_livez_ms)
    _FIGURES["good runs during attacks"] = target.good_runs
    _FIGURES["runs lost"] = target.lost_runs
    write_figures(_FIGURES)
