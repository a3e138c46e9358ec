"""
`make bench-peers`: Trunkline and other durable systems do the same job in turn, and one table shows the results.

    python -m bench.peers PYTHON_OF_THE_PEERS [--quick] [--only SYSTEM]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from bench.figures.distributed import AT_A_TIME, per_thousand_steps, rates
from bench.harness.embedded import Server, trunkline_up
from bench.harness.environment import BenchEnvironment, open_environment, sync_ms
from bench.harness.fleet import Fleet, fleet
from bench.harness.load import LoadOrder, LoadResult
from bench.harness.table import ratio, show_columns, spread
from bench.peers.systems import FLOOR, PEERS, Peer, PeerInstallation, PeerMissing

_EMBEDDED = "Trunkline, embedded"
_DISTRIBUTED = "Trunkline, Kafka and PostgreSQL"
# An order takes about so long. The systems differ by a factor of a thousand: the warm-up decides how many runs it has.
_ORDER_SECONDS = 6
_MOST_RUNS = 4_000
_FEWEST_RUNS = 20
_COLUMNS = ("system", "workflows/s", "of the floor", "p50 of one alone", "CPU s per 1,000 steps", "memory")


@dataclass
class _System:
    """What is measured: ours, the floor or a peer."""

    name: str
    measure: Callable[[LoadOrder], Awaitable[LoadResult]]
    megabytes: Callable[[], float]
    runs: int = 0
    many: list[LoadResult] = field(default_factory=list[LoadResult])
    alone: list[LoadResult] = field(default_factory=list[LoadResult])

    async def warm_up(self) -> None:
        first = await self.measure(LoadOrder(AT_A_TIME, AT_A_TIME))
        took = await self.measure(LoadOrder(AT_A_TIME, _runs_in(_ORDER_SECONDS, first)))
        self.runs = _runs_in(_ORDER_SECONDS, took)

    async def measure_round(self, environment: BenchEnvironment) -> None:
        self.many.append(await self.measure(LoadOrder(AT_A_TIME, environment.runs(self.runs))))
        self.alone.append(await self.measure(LoadOrder(1, max(self.runs // 20, 5))))

    def line(self, floor: _System) -> tuple[str, ...]:
        return (
            self.name,
            spread(rates(self.many)),
            ratio(rates(self.many), rates(floor.many)),
            spread([took.p50_ms for took in self.alone], ".1f", " ms"),
            spread(per_thousand_steps(self.many), ".2f"),
            f"{self.megabytes():.0f} MB",
        )


def _runs_in(seconds: int, took: LoadResult) -> int:
    return min(max(int(took.per_second * seconds), _FEWEST_RUNS), _MOST_RUNS)


def _embedded(server: Server) -> _System:
    return _System(_EMBEDDED, server.measure, server.process.resident_megabytes)


def _distributed(ours: Fleet) -> _System:
    async def measure(order: LoadOrder) -> LoadResult:
        return (await ours.measure(order)).took

    return _System(_DISTRIBUTED, measure, lambda: sum(ours.megabytes().values()))


def _peer(name: str, peer: Peer) -> _System:
    async def measure(order: LoadOrder) -> LoadResult:
        return peer.measure(order)

    return _System(name, measure, peer.megabytes)


async def _measure(environment: BenchEnvironment, options: argparse.Namespace) -> list[tuple[str, ...]]:
    missing: list[tuple[str, ...]] = []
    with ExitStack() as stack:
        ours = stack.enter_context(fleet())
        ours.add_one_of_each()
        await ours.set_up(environment.agent_url)
        server = stack.enter_context(trunkline_up(environment.new_folder()))
        await server.set_up(environment.agent_url)
        systems = [_embedded(server), _distributed(ours)]
        installation = PeerInstallation(
            environment, ours, options.peers_python, Path(options.peers_python).parents[1]
        )
        for name, start in PEERS.items():
            if options.only and name != FLOOR and name not in options.only:
                continue
            try:
                systems.append(_peer(name, stack.enter_context(start(installation))))
            except PeerMissing as reason:
                missing.append((name, f"left out: {reason}"))
        for system in systems:
            print(f"warming up: {system.name}", file=sys.stderr)
            await system.warm_up()
        for number in range(environment.rounds):
            print(f"round {number + 1} of {environment.rounds}", file=sys.stderr)
            for system in systems:
                await system.measure_round(environment)
        floor = next(system for system in systems if system.name == FLOOR)
        return [*(system.line(floor) for system in systems), *missing]


async def _main(options: argparse.Namespace) -> None:
    with open_environment(quick=options.quick, memory_runs=0) as environment:
        lines = await _measure(environment, options)
        print(
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end, an fsync takes"
            f" {sync_ms(environment.folder):.2f} ms; three steps, {AT_A_TIME} workflows at a time; CPU and memory with"
            " the servers that a system needs; medians (lowest-highest)\n"
        )
    show_columns(_COLUMNS, lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("peers_python", type=lambda path: str(Path(path).absolute()))
    parser.add_argument("--quick", action="store_true", help="a quarter of everything")
    parser.add_argument("--only", choices=PEERS, action="append", help="this system; may be repeated")
    uvloop.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
