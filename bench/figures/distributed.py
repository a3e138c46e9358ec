"""The job in the distributed mode, all roles on this machine, in turn with the floor on the same PostgreSQL."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from deploy.local.errors import ServiceMissing

from bench.harness.environment import BenchEnvironment
from bench.harness.fleet import KINDS, POSTGRES, Fleet, FleetResult, fleet
from bench.harness.job import STEPS
from bench.harness.load import LoadOrder, LoadResult, give_order
from bench.harness.processes import Child, child, python
from bench.harness.table import FigureRow, ratio, spread

AT_A_TIME = 50
RUNS = 1_000
LONE_RUNS = 100
# The JVM compiles what it does often: Kafka takes a third of its first CPU time after so many.
WARM_RUNS = 2_000
_FIGURE = "workflows/s, Kafka + PostgreSQL"


@dataclass
class _Rounds:
    """Ours and the floor's, in turn."""

    ours: list[FleetResult] = field(default_factory=list[FleetResult])
    floor: list[LoadResult] = field(default_factory=list[LoadResult])

    @property
    def ours_alone(self) -> list[LoadResult]:
        return [round_.took for round_ in self.ours]


async def distributed(environment: BenchEnvironment) -> list[FigureRow]:
    try:
        with fleet() as ours:
            return await _measure(environment, ours)
    except ServiceMissing as missing:
        return [FigureRow(_FIGURE, "left out", str(missing))]


async def _measure(environment: BenchEnvironment, ours: Fleet) -> list[FigureRow]:
    ours.add_one_of_each()
    await ours.set_up(environment.agent_url)
    with floor_on(environment, ours) as floor:
        await warm_up(environment, ours, floor)
        many, lone = _Rounds(), _Rounds()
        syncs = await _syncs_a_run(ours, environment)
        for _ in range(environment.rounds):
            await _round(many, ours, floor, LoadOrder(AT_A_TIME, environment.runs(RUNS)))
            await _round(lone, ours, floor, LoadOrder(1, environment.runs(LONE_RUNS)))
        megabytes = ours.megabytes()
        ours.add_one_of_each()
        await warm_up(environment, ours, floor)
        twice = _Rounds()
        for _ in range(environment.rounds):
            await _round(twice, ours, floor, LoadOrder(AT_A_TIME, environment.runs(RUNS)))
        floor_megabytes = floor.resident_megabytes()
    return [
        _rate_row(f"{_FIGURE}, {AT_A_TIME} at a time", many),
        _rate_row("  two of each role", twice),
        *_lone_rows(lone, syncs),
        *_cpu_rows(many),
        *_memory_rows(megabytes, floor_megabytes),
    ]


@contextmanager
def floor_on(environment: BenchEnvironment, ours: Fleet) -> Generator[Child]:
    """The floor, in a separate database."""
    ours.postgres.create_database("floor")
    command = python("bench.floors.postgres", environment.agent_url, ours.postgres.url("floor"))
    with child(command, ours.folder / "floor.log") as floor:
        yield floor


async def warm_up(environment: BenchEnvironment, ours: Fleet, *others: Child) -> None:
    order = LoadOrder(AT_A_TIME, environment.runs(WARM_RUNS))
    await ours.measure(order)
    for other in others:
        give_order(other, order)


async def _syncs_a_run(ours: Fleet, environment: BenchEnvironment) -> float:
    runs = environment.runs(LONE_RUNS)
    before = ours.wal_syncs()
    await ours.measure(LoadOrder(1, runs))
    return (ours.wal_syncs() - before) / runs


async def _round(rounds: _Rounds, ours: Fleet, floor: Child, order: LoadOrder) -> None:
    rounds.floor.append(order_with_postgres(ours, floor, order))
    rounds.ours.append(await ours.measure(order))


def order_with_postgres(ours: Fleet, worker: Child, order: LoadOrder) -> LoadResult:
    """What PostgreSQL does for the worker counts for it too."""
    before = ours.postgres_cpu()
    took = give_order(worker, order)
    took.cpu_seconds += ours.postgres_cpu() - before
    return took


def _rate_row(figure: str, rounds: _Rounds) -> FigureRow:
    ours, floor = rates(rounds.ours_alone), rates(rounds.floor)
    return FigureRow(figure, spread(ours), f"floor {spread(floor)}", ratio(ours, floor), "0.1")


def rates(took_all: Sequence[LoadResult]) -> list[float]:
    return [took.per_second for took in took_all]


def _lone_rows(lone: _Rounds, syncs: float) -> list[FigureRow]:
    ours = [took.p50_ms for took in lone.ours_alone]
    floor = [took.p50_ms for took in lone.floor]
    return [
        FigureRow(
            "  p50 of one at a time, all 3 steps",
            spread(ours, ".1f", " ms"),
            f"floor {spread(floor, '.2f', ' ms')}",
            ratio(ours, floor),
        ),
        FigureRow("  waits for PostgreSQL's disk, a run", f"{syncs:.1f}", "floor 4"),
    ]


def _cpu_rows(many: _Rounds) -> list[FigureRow]:
    ours = per_thousand_steps([round_.took for round_ in many.ours])
    floor = per_thousand_steps(many.floor)
    rows = [
        FigureRow(
            "  CPU s per 1,000 steps, all processes",
            spread(ours, ".2f"),
            f"floor {spread(floor, '.2f')}",
            ratio(ours, floor),
        )
    ]
    for kind in KINDS:
        seconds = [round_.cpu[kind] / (round_.took.runs * STEPS) * 1_000 for round_ in many.ours]
        rows.append(FigureRow(f"    {kind}", spread(seconds, ".2f")))
    return rows


def per_thousand_steps(took_all: Sequence[LoadResult]) -> list[float]:
    """CPU seconds."""
    return [took.cpu_seconds / (took.runs * STEPS) * 1_000 for took in took_all]


def _memory_rows(megabytes: dict[str, float], floor_megabytes: float) -> list[FigureRow]:
    floor = {POSTGRES: f"floor {floor_megabytes:.0f} MB"}
    return [
        FigureRow(f"  memory: {kind}", f"{size:.0f} MB", floor.get(kind, ""))
        for kind, size in megabytes.items()
    ]
