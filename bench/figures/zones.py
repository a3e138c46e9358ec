"""
A call of a zone through the zone client, compared with the same bytes between a bare aiohttp client and server.

What the two sides add: the checks of the contract, the call written down before and after its work (so that no id runs
twice, not after a kill either), the deadline, and the guarded way out.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, AsyncExitStack
from pathlib import Path
from statistics import median
from uuid import uuid4

import aiohttp
import msgspec

from bench.harness.embedded import PROGRAM
from bench.harness.environment import BenchEnvironment
from bench.harness.job import TEXT
from bench.harness.processes import Child, child, python
from bench.harness.table import FigureRow, spread
from trunkline.jsontypes import JsonObject
from trunkline.protocols.zone.adapter import METHOD, execute_request
from trunkline.zones import ZoneClient, open_zone_client

_GOAL_US = 200
# So few that both sides of a pair meet the same noise.
_BLOCK = 25
_CALLS = 2_000
_WARM_CALLS = 200


class _ZoneTiming(msgspec.Struct):
    """Of one call, in microseconds."""

    latency: float
    # Of both processes.
    cpu: float


class _ZoneCallVariant:
    """One way to make the call, and whose CPU time it takes in addition to our own."""

    def __init__(self, server: Child, call: Callable[[], Awaitable[object]]) -> None:
        self._server = server
        self._call = call
        self._latencies: list[float] = []
        self._cpu = 0.0

    async def make(self, calls: int) -> None:
        cpu = -self._cpu_seconds()
        for _ in range(calls):
            began = time.perf_counter()
            await self._call()
            self._latencies.append(time.perf_counter() - began)
        self._cpu += cpu + self._cpu_seconds()

    def _cpu_seconds(self) -> float:
        return time.process_time() + self._server.cpu_seconds()

    def took(self) -> _ZoneTiming:
        """Since it was last asked."""
        took = _ZoneTiming(median(self._latencies) * 1e6, self._cpu / len(self._latencies) * 1e6)
        self._latencies, self._cpu = [], 0.0
        return took


def _zone(data: Path, log: Path) -> AbstractContextManager[Child]:
    command = [
        str(PROGRAM),
        "zone",
        "serve",
        "bench.figures.instant_zone:zone",
        "--port",
        "0",
        "--data",
        str(data),
    ]
    return child(command, log)


async def zones(environment: BenchEnvironment) -> list[FigureRow]:
    folder = environment.new_folder()
    params: JsonObject = {
        "channel": "C024BE91L",
        "text": TEXT,
        "bot_token": "xoxb-0",
        "correlation_id": "bench",
    }
    body = execute_request(str(uuid4()), METHOD, params).body
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        served = stack.enter_context(_zone(folder / "zone", folder / "zone.log"))
        (folder / "answer").write_bytes(await _post(session, served.first_line, body))
        bare = stack.enter_context(
            child(python("bench.floors.bare_aiohttp", str(folder / "answer")), folder / "bare.log")
        )
        link: ZoneClient = await stack.enter_async_context(
            open_zone_client(served.first_line, profile="slack")
        )
        ours = _ZoneCallVariant(served, lambda: link.execute_task(params))
        others = _ZoneCallVariant(bare, lambda: _post(session, bare.first_line, body))
        await _in_turn(ours, others, _WARM_CALLS)
        pairs = [await _in_turn(ours, others, environment.runs(_CALLS)) for _ in range(environment.rounds)]
    return _rows(pairs)


async def _in_turn(
    ours: _ZoneCallVariant, others: _ZoneCallVariant, calls: int
) -> tuple[_ZoneTiming, _ZoneTiming]:
    for _ in range(calls // _BLOCK):
        await ours.make(_BLOCK)
        await others.make(_BLOCK)
    return ours.took(), others.took()


def _rows(pairs: list[tuple[_ZoneTiming, _ZoneTiming]]) -> list[FigureRow]:
    added = [ours.latency - bare.latency for ours, bare in pairs]
    cpu = [ours.cpu - bare.cpu for ours, bare in pairs]
    bare = f"bare aiohttp {spread([bare.latency for _, bare in pairs], '.0f', ' us')}"
    bare_cpu = f"bare aiohttp {spread([bare.cpu for _, bare in pairs], '.0f', ' us')}"
    return [
        FigureRow(
            "what endpoint and link of a zone add to a call",
            spread(added, ".0f", " us"),
            bare,
            f"{median(added) / _GOAL_US:.2f}",
            f"at most {_GOAL_US} us",
        ),
        FigureRow("  CPU of both sides", spread(cpu, ".0f", " us"), bare_cpu),
    ]


async def _post(session: aiohttp.ClientSession, url: str, body: bytes) -> bytes:
    async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
        return await response.read()
