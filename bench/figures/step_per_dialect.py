"""A step in each dialect compared with one in Simple A2A: what the server's CPU takes for it."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from bench.harness.embedded import Server, Target, check_completed, drive, trunkline_up
from bench.harness.environment import BenchEnvironment
from bench.harness.http_client import request
from bench.harness.job import AGENT, DEFINITION, RUN_INPUT, STEPS, WORKFLOW
from bench.harness.load import LoadOrder, LoadResult
from bench.harness.table import FigureRow, ratio, spread

_AT_A_TIME = 50
_RUNS = 600
_FIRST = "simple-a2a"
# By name: the path of the agent, and the protocol that is pinned.
_AGENTS = {
    _FIRST: ("agent", "simple-a2a"),
    "jsonrpc-2.0": ("agent", "jsonrpc-2.0"),
    "jsonrpc-call": ("agent", "jsonrpc-call"),
    "a2a-0.1": ("agent", "a2a-0.1"),
    "a2a-0.2": ("agent", "a2a-0.2"),
    "a2a-0.3": ("agent", "a2a-0.3"),
    "a2a-1.0": ("agent", "a2a-1.0"),
    "a2a-1.0-http": ("agent", "a2a-1.0-http"),
    "a2a-0.3, found by its card": ("carded", "auto"),
    "a2a-0.3, streamed": ("streaming", "auto"),
}


async def step_per_dialect(environment: BenchEnvironment) -> list[FigureRow]:
    took: dict[str, list[LoadResult]] = defaultdict(list)
    with trunkline_up(environment.new_folder()) as server:
        for number, (place, protocol) in enumerate(_AGENTS.values()):
            await _set_up(server, number, environment.agent_url.replace("/agent", f"/{place}"), protocol)
        for number in range(len(_AGENTS)):
            await _measure(server, number, LoadOrder(_AT_A_TIME, 100))
        for _ in range(environment.rounds):
            for number, name in enumerate(_AGENTS):
                took[name].append(
                    await _measure(server, number, LoadOrder(_AT_A_TIME, environment.runs(_RUNS)))
                )
    cpu = {name: [_cpu(one) for one in all_] for name, all_ in took.items()}
    first = f"{_FIRST} {spread(cpu[_FIRST], '.3f')}"
    return [
        FigureRow(
            f"CPU s per 1,000 steps, {name}",
            spread(cpu[name], ".3f"),
            first,
            ratio(cpu[name], cpu[_FIRST]),
            "1.3",
        )
        for name in _AGENTS
        if name != _FIRST
    ]


async def _set_up(server: Server, number: int, url: str, protocol: str) -> None:
    agent = {"name": f"{AGENT}{number}", "url": url, "protocol": protocol}
    await server.call("/api/v1/agents", msgspec.json.encode(agent))
    await server.save(
        DEFINITION.replace(AGENT, f"{AGENT}{number}").replace(
            f"name: {WORKFLOW}", f"name: {WORKFLOW}{number}"
        )
    )


async def _measure(server: Server, number: int, order: LoadOrder) -> LoadResult:
    path = f"/api/v1/workflows/{WORKFLOW}{number}/execute?wait=30"
    before = server.process.cpu_seconds()
    took = await drive([Target(server.url, request(server.url, path, RUN_INPUT))], order, check_completed)
    took.cpu_seconds = server.process.cpu_seconds() - before
    return took


def _cpu(took: LoadResult) -> float:
    return took.cpu_seconds / (took.runs * STEPS) * 1_000
