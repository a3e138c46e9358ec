"""The job, 50 at a time and one at a time: Trunkline, Trunkline without its API, and the floor, in turn."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack

import msgspec

from bench.harness.embedded import Server, Target, drive, trunkline_up
from bench.harness.environment import BenchEnvironment
from bench.harness.http_client import request
from bench.harness.job import STEPS, TEXT, request_body
from bench.harness.load import LoadOrder, LoadResult, give_order
from bench.harness.processes import child, python
from bench.harness.table import FigureRow, ratio, spread

_AT_A_TIME = 50
_RUNS = 2_000
_LONE_RUNS = 150
_COMMIT_RUNS = 50


async def speed(environment: BenchEnvironment) -> list[FigureRow]:
    folder = environment.new_folder()
    many: dict[str, list[LoadResult]] = defaultdict(list)
    lone: dict[str, list[LoadResult]] = defaultdict(list)
    with ExitStack() as stack:
        floor = stack.enter_context(
            child(
                python("bench.floors.sqlite", environment.agent_url, str(folder / "floor.db")),
                folder / "floor.log",
            )
        )
        bare = stack.enter_context(
            child(
                python("bench.harness.without_api", environment.agent_url, str(folder / "inprocess")),
                folder / "inprocess.log",
            )
        )
        server = stack.enter_context(trunkline_up(folder))
        await server.set_up(environment.agent_url)
        commits = await _commits_a_run(server)
        warm = LoadOrder(_AT_A_TIME, 200)
        give_order(floor, warm)
        give_order(bare, warm)
        await server.measure(warm)
        for _ in range(environment.rounds):
            for took, order in (
                (many, _order(environment, _AT_A_TIME, _RUNS)),
                (lone, _order(environment, 1, _LONE_RUNS)),
            ):
                took["floor"].append(give_order(floor, order))
                took["ours"].append(await server.measure(order))
                took["bare"].append(give_order(bare, order))
            lone["call"].append(await _bare_call(environment))
        memory = await _memory(environment, server, sum(took.runs for took in (*many["ours"], *lone["ours"])))
        floor_memory = floor.resident_megabytes()
    return [*_many_rows(many), *_lone_rows(lone, commits), memory_row(environment, memory, floor_memory)]


def _order(environment: BenchEnvironment, at_a_time: int, runs: int) -> LoadOrder:
    return LoadOrder(at_a_time, environment.runs(runs))


async def _commits_a_run(server: Server) -> float:
    await server.measure(LoadOrder(1, 3))
    before = server.commits()
    await server.measure(LoadOrder(1, _COMMIT_RUNS))
    return (server.commits() - before) / _COMMIT_RUNS


async def _bare_call(environment: BenchEnvironment) -> LoadResult:
    body = msgspec.json.encode(request_body("bare/1", TEXT))
    target = Target(environment.agent_url, request(environment.agent_url, "/agent", body))
    return await drive([target], LoadOrder(1, environment.runs(1_000)))


async def _memory(environment: BenchEnvironment, server: Server, done: int) -> float:
    left = environment.memory_runs - done
    if left > 0:
        await server.measure(LoadOrder(_AT_A_TIME, left))
    return server.process.resident_megabytes()


def memory_row(environment: BenchEnvironment, megabytes: float, floor_megabytes: float) -> FigureRow:
    return FigureRow(
        f"memory after {environment.memory_runs:,} runs, API up",
        f"{megabytes:.0f} MB",
        f"floor {floor_megabytes:.0f} MB",
        f"{megabytes / floor_megabytes:.2f}",
        "under 100 MB",
    )


def _many_rows(many: dict[str, list[LoadResult]]) -> list[FigureRow]:
    rate = {name: [took.per_second for took in took_all] for name, took_all in many.items()}
    cpu = {name: [_cpu(took) for took in took_all] for name, took_all in many.items()}
    floor_rate, floor_cpu = f"floor {spread(rate['floor'])}", f"floor {spread(cpu['floor'], '.3f')}"
    return [
        FigureRow(
            f"workflows/s, {_AT_A_TIME} at a time",
            spread(rate["ours"]),
            floor_rate,
            ratio(rate["ours"], rate["floor"]),
            "0.5 (first 0.33)",
        ),
        FigureRow("  without the API", spread(rate["bare"]), floor_rate, ratio(rate["bare"], rate["floor"])),
        FigureRow(
            "CPU s per 1,000 steps",
            spread(cpu["ours"], ".3f"),
            floor_cpu,
            ratio(cpu["ours"], cpu["floor"]),
            "2",
        ),
        FigureRow(
            "  without the API", spread(cpu["bare"], ".3f"), floor_cpu, ratio(cpu["bare"], cpu["floor"])
        ),
    ]


def _cpu(took: LoadResult) -> float:
    return took.cpu_seconds / (took.runs * STEPS) * 1_000


def _lone_rows(lone: dict[str, list[LoadResult]], commits: float) -> list[FigureRow]:
    p50 = {name: [took.p50_ms for took in took_all] for name, took_all in lone.items()}
    over = [(ours - STEPS * call) / STEPS for ours, call in zip(p50["ours"], p50["call"], strict=True)]
    floor = f"floor {spread(p50['floor'], '.2f', ' ms')}"
    call = f"bare call {spread(p50['call'], '.3f', ' ms')}"
    return [
        FigureRow(
            "p50 of one at a time, all 3 steps",
            spread(p50["ours"], ".2f", " ms"),
            floor,
            ratio(p50["ours"], p50["floor"]),
        ),
        FigureRow(
            "  without the API", spread(p50["bare"], ".2f", " ms"), floor, ratio(p50["bare"], p50["floor"])
        ),
        FigureRow("  over the bare call, each step", spread(over, ".2f", " ms"), call, "", "at most 1 ms"),
        FigureRow("commits of one run at a time", f"{commits:.2f}", "floor 4", "", "at most 4"),
    ]
