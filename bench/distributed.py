"""The job in the distributed mode, all roles on this machine, in turn with the floor on the same PostgreSQL."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from deploy.local.errors import ServiceMissing

from bench.fleet import KINDS, POSTGRES, Fleet, FleetTook, fleet
from bench.job import STEPS
from bench.load import Order, Took, give_order
from bench.processes import Child, child, python
from bench.stand import Stand
from bench.table import Row, ratio, spread

AT_A_TIME = 50
RUNS = 1_000
LONE_RUNS = 100
# The JVM compiles what it does often: Kafka takes a third of its first CPU time after so many.
WARM_RUNS = 2_000
_FIGURE = "workflows/s, Kafka + PostgreSQL"


@dataclass
class _Rounds:
    """Ours and the floor's, in turn."""

    ours: list[FleetTook] = field(default_factory=list[FleetTook])
    floor: list[Took] = field(default_factory=list[Took])

    @property
    def ours_alone(self) -> list[Took]:
        return [round_.took for round_ in self.ours]


async def distributed(stand: Stand) -> list[Row]:
    try:
        with fleet() as ours:
            return await _measure(stand, ours)
    except ServiceMissing as missing:
        return [Row(_FIGURE, "left out", str(missing))]


async def _measure(stand: Stand, ours: Fleet) -> list[Row]:
    ours.add_one_of_each()
    await ours.set_up(stand.agent_url)
    with floor_on(stand, ours) as floor:
        await warm_up(stand, ours, floor)
        many, lone = _Rounds(), _Rounds()
        syncs = await _syncs_a_run(ours, stand)
        for _ in range(stand.rounds):
            await _round(many, ours, floor, Order(AT_A_TIME, stand.runs(RUNS)))
            await _round(lone, ours, floor, Order(1, stand.runs(LONE_RUNS)))
        megabytes = ours.megabytes()
        ours.add_one_of_each()
        await warm_up(stand, ours, floor)
        twice = _Rounds()
        for _ in range(stand.rounds):
            await _round(twice, ours, floor, Order(AT_A_TIME, stand.runs(RUNS)))
        floor_megabytes = floor.resident_megabytes()
    return [
        _rate_row(f"{_FIGURE}, {AT_A_TIME} at a time", many),
        _rate_row("  two of each role", twice),
        *_lone_rows(lone, syncs),
        *_cpu_rows(many),
        *_memory_rows(megabytes, floor_megabytes),
    ]


@contextmanager
def floor_on(stand: Stand, ours: Fleet) -> Generator[Child]:
    """The floor, in a database of its own beside ours."""
    ours.postgres.create_database("floor")
    command = python("bench.floor_postgres", stand.agent_url, ours.postgres.url("floor"))
    with child(command, ours.folder / "floor.log") as floor:
        yield floor


async def warm_up(stand: Stand, ours: Fleet, *others: Child) -> None:
    order = Order(AT_A_TIME, stand.runs(WARM_RUNS))
    await ours.measure(order)
    for other in others:
        give_order(other, order)


async def _syncs_a_run(ours: Fleet, stand: Stand) -> float:
    runs = stand.runs(LONE_RUNS)
    before = ours.wal_syncs()
    await ours.measure(Order(1, runs))
    return (ours.wal_syncs() - before) / runs


async def _round(rounds: _Rounds, ours: Fleet, floor: Child, order: Order) -> None:
    rounds.floor.append(order_with_postgres(ours, floor, order))
    rounds.ours.append(await ours.measure(order))


def order_with_postgres(ours: Fleet, worker: Child, order: Order) -> Took:
    """What PostgreSQL does for the worker counts for it too."""
    before = ours.postgres_cpu()
    took = give_order(worker, order)
    took.cpu_seconds += ours.postgres_cpu() - before
    return took


def _rate_row(figure: str, rounds: _Rounds) -> Row:
    ours, floor = rates(rounds.ours_alone), rates(rounds.floor)
    return Row(figure, spread(ours), f"floor {spread(floor)}", ratio(ours, floor), "0.1")


def rates(took_all: Sequence[Took]) -> list[float]:
    return [took.per_second for took in took_all]


def _lone_rows(lone: _Rounds, syncs: float) -> list[Row]:
    ours = [took.p50_ms for took in lone.ours_alone]
    floor = [took.p50_ms for took in lone.floor]
    return [
        Row(
            "  p50 of one at a time, all 3 steps",
            spread(ours, ".1f", " ms"),
            f"floor {spread(floor, '.2f', ' ms')}",
            ratio(ours, floor),
        ),
        Row("  waits for PostgreSQL's disk, a run", f"{syncs:.1f}", "floor 4"),
    ]


def _cpu_rows(many: _Rounds) -> list[Row]:
    ours = per_thousand_steps([round_.took for round_ in many.ours])
    floor = per_thousand_steps(many.floor)
    rows = [
        Row(
            "  CPU s per 1,000 steps, all processes",
            spread(ours, ".2f"),
            f"floor {spread(floor, '.2f')}",
            ratio(ours, floor),
        )
    ]
    for kind in KINDS:
        seconds = [round_.cpu[kind] / (round_.took.runs * STEPS) * 1_000 for round_ in many.ours]
        rows.append(Row(f"    {kind}", spread(seconds, ".2f")))
    return rows


def per_thousand_steps(took_all: Sequence[Took]) -> list[float]:
    """CPU seconds."""
    return [took.cpu_seconds / (took.runs * STEPS) * 1_000 for took in took_all]


def _memory_rows(megabytes: dict[str, float], floor_megabytes: float) -> list[Row]:
    floor = {POSTGRES: f"floor {floor_megabytes:.0f} MB beside it"}
    return [
        Row(f"  memory: {kind}", f"{size:.0f} MB", floor.get(kind, "")) for kind, size in megabytes.items()
    ]
