"""`python -m bench`: every figure, or one; `--profile` shows where the time of the job goes instead."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping

import uvloop

from bench.figures.distributed import distributed
from bench.figures.entry_points import command, execute, start
from bench.figures.long_runs import long_runs, loops, slow_disk
from bench.figures.protocol_translation import protocol_translation
from bench.figures.run_list import run_list
from bench.figures.run_page import run_page
from bench.figures.speed import speed
from bench.figures.step_per_dialect import step_per_dialect
from bench.figures.zones import zones
from bench.harness.embedded import LOG, trunkline_up
from bench.harness.environment import BenchEnvironment, open_environment, sync_ms
from bench.harness.load import LoadOrder
from bench.harness.table import FigureRow, show
from bench.profiling.fleet import profile_distributed, samples_in

FIGURES: Mapping[str, Callable[[BenchEnvironment], Awaitable[list[FigureRow]]]] = {
    "speed": speed,
    "dialects": protocol_translation,
    "spoken": step_per_dialect,
    "zones": zones,
    "execute": execute,
    "long": long_runs,
    "loops": loops,
    "disk": slow_disk,
    "command": command,
    "start": start,
    "distributed": distributed,
    "page": run_page,
    "runs": run_list,
}
_PROFILED_RUNS = 6_000


async def _measure(names: list[str], options: argparse.Namespace) -> None:
    rows: list[FigureRow] = []
    began = time.perf_counter()
    with open_environment(quick=options.quick, memory_runs=options.memory_runs) as environment:
        for name in names:
            print(f"measuring: {name}", file=sys.stderr)
            rows += await FIGURES[name](environment)
        print(
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end, an fsync takes"
            f" {sync_ms(environment.folder):.2f} ms, measured in {time.perf_counter() - began:.0f} s;"
            " medians (lowest-highest)\n"
        )
    show(rows)


async def _profile(options: argparse.Namespace) -> None:
    with open_environment(quick=options.quick, memory_runs=options.memory_runs) as environment:
        if options.only == ["distributed"]:
            await profile_distributed(environment, _PROFILED_RUNS // 2)
            return
        with trunkline_up(environment.folder, sampled=True) as server:
            await server.set_up(environment.agent_url)
            took = await server.measure(LoadOrder(50, environment.runs(_PROFILED_RUNS)))
        print(f"{took.per_second:.0f} workflows/s while sampled")
        print(samples_in(environment.folder / LOG))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a quarter of everything, in about 40 s")
    parser.add_argument("--only", choices=FIGURES, action="append", help="this figure alone; may be repeated")
    parser.add_argument(
        "--memory-runs", type=int, default=None, help="runs before the memory is looked at (10,000)"
    )
    parser.add_argument(
        "--profile",
        action="store_true",
        help="where the time of the job goes, instead of the table; with --only distributed, in each role",
    )
    options = parser.parse_args()
    if options.memory_runs is None:
        options.memory_runs = 2_500 if options.quick else 10_000
    if options.profile:
        uvloop.run(_profile(options))
    else:
        uvloop.run(_measure(options.only or list(FIGURES), options))


if __name__ == "__main__":
    main()
