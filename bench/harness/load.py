"""Keeps a number of jobs going at a time, here or in a worker process that takes its orders on stdin."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from statistics import median

import msgspec

from bench.harness.processes import Child


class LoadOrder(msgspec.Struct):
    at_a_time: int
    runs: int


class LoadResult(msgspec.Struct, kw_only=True):
    """What a number of runs took."""

    runs: int
    seconds: float
    p50_ms: float
    cpu_seconds: float = 0.0

    @property
    def per_second(self) -> float:
        return self.runs / self.seconds


async def keep_busy(order: LoadOrder, slot: Callable[[int], Callable[[], Awaitable[None]]]) -> LoadResult:
    """`slot(n)` gives the job that the nth of those that go at a time does again and again."""
    latencies: list[float] = []
    left = order.runs

    async def work(run_once: Callable[[], Awaitable[None]]) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            began = time.perf_counter()
            await run_once()
            latencies.append(time.perf_counter() - began)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(order.at_a_time):
            group.create_task(work(slot(number)))
    seconds = time.perf_counter() - began
    return LoadResult(runs=len(latencies), seconds=seconds, p50_ms=median(latencies) * 1_000)


async def take_orders(slot: Callable[[int], Callable[[], Awaitable[None]]]) -> None:
    """The worker's side: one order a line, one answer a line, until stdin ends."""
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        took = await keep_busy(msgspec.json.decode(line, type=LoadOrder), slot)
        print(msgspec.json.encode(took).decode(), flush=True)


def give_order(worker: Child, order: LoadOrder) -> LoadResult:
    """The measurement's side; the CPU time is that of the worker."""
    before = worker.cpu_seconds()
    worker.write_line(msgspec.json.encode(order).decode())
    took = msgspec.json.decode(worker.read_line(), type=LoadResult)
    took.cpu_seconds = worker.cpu_seconds() - before
    return took
