"""
`make bench-peers`: our distributed mode and DBOS do the same job in turn, on the same PostgreSQL.

    python -m bench.peers PYTHON_OF_THE_PEERS [--quick]
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path

import uvloop

from bench.figures.distributed import (
    AT_A_TIME,
    LONE_RUNS,
    floor_on,
    order_with_postgres,
    per_thousand_steps,
    rates,
    warm_up,
)
from bench.harness.environment import BenchEnvironment, open_environment, sync_ms
from bench.harness.fleet import fleet
from bench.harness.load import LoadOrder, LoadResult, give_order
from bench.harness.processes import child, python
from bench.harness.table import FigureRow, ratio, show, spread

_RUNS = 600


class _Measured:
    """What each of them took, 50 at a time and one at a time."""

    def __init__(self) -> None:
        self.many: dict[str, list[LoadResult]] = {"ours": [], "DBOS": [], "floor": []}
        self.lone: dict[str, list[LoadResult]] = {"ours": [], "DBOS": [], "floor": []}


async def _measure(environment: BenchEnvironment, peers_python: str) -> _Measured:
    measured = _Measured()
    with ExitStack() as stack:
        ours = stack.enter_context(fleet())
        ours.add_one_of_each()
        await ours.set_up(environment.agent_url)
        ours.postgres.create_database("dbos")
        command = [
            peers_python,
            *python("bench.peers.dbos_job", environment.agent_url, ours.postgres.url("dbos"))[1:],
        ]
        workers = {
            "DBOS": stack.enter_context(child(command, ours.folder / "dbos.log")),
            "floor": stack.enter_context(floor_on(environment, ours)),
        }
        await warm_up(environment, ours, workers["floor"])
        give_order(workers["DBOS"], LoadOrder(AT_A_TIME, environment.runs(_RUNS)))
        for number in range(environment.rounds):
            print(f"round {number + 1} of {environment.rounds}", file=sys.stderr)
            for took, order in (
                (measured.many, LoadOrder(AT_A_TIME, environment.runs(_RUNS))),
                (measured.lone, LoadOrder(1, environment.runs(LONE_RUNS))),
            ):
                took["ours"].append((await ours.measure(order)).took)
                for name, worker in workers.items():
                    took[name].append(order_with_postgres(ours, worker, order))
    return measured


def _rows(measured: _Measured) -> list[FigureRow]:
    rate = {name: rates(took) for name, took in measured.many.items()}
    cpu = {name: per_thousand_steps(took) for name, took in measured.many.items()}
    p50 = {name: [took.p50_ms for took in took_all] for name, took_all in measured.lone.items()}
    rows: list[FigureRow] = []
    for other, goal in (("DBOS", "5"), ("floor", "0.1")):
        rows += [
            FigureRow(
                f"workflows/s, {AT_A_TIME} at a time",
                spread(rate["ours"]),
                f"{other} {spread(rate[other])}",
                ratio(rate["ours"], rate[other]),
                goal,
            ),
            FigureRow(
                "  p50 of one at a time, all 3 steps",
                spread(p50["ours"], ".1f", " ms"),
                f"{other} {spread(p50[other], '.1f', ' ms')}",
                ratio(p50["ours"], p50[other]),
            ),
            FigureRow(
                "  CPU s per 1,000 steps, with PostgreSQL",
                spread(cpu["ours"], ".2f"),
                f"{other} {spread(cpu[other], '.2f')}",
                ratio(cpu["ours"], cpu[other]),
            ),
        ]
    return rows


async def _main(options: argparse.Namespace) -> None:
    with open_environment(quick=options.quick, memory_runs=0) as environment:
        measured = await _measure(environment, options.peers_python)
        print(
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end, an fsync takes"
            f" {sync_ms(environment.folder):.2f} ms; ours is every role, Kafka and PostgreSQL on this machine; medians"
            " (lowest-highest)\n"
        )
    show(_rows(measured))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("peers_python", type=lambda path: str(Path(path).absolute()))
    parser.add_argument("--quick", action="store_true", help="a quarter of everything")
    uvloop.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
