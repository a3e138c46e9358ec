"""What a step costs in a long run, and an item in a long loop, against a short one; and what a slow disk costs."""

from __future__ import annotations

import time

from bench.harness.embedded import Server, trunkline_up
from bench.harness.environment import BenchEnvironment
from bench.harness.job import loop_of, sequence_of
from bench.harness.load import LoadOrder, give_order
from bench.harness.processes import child, python
from bench.harness.table import FigureRow, ratio, spread

_SHORT = 10
_LONG = 10_000
_SYNC_DELAY = 0.001


async def long_runs(environment: BenchEnvironment) -> list[FigureRow]:
    """Steps in sequence."""
    steps = environment.runs(_LONG)
    definitions = {number: sequence_of(number) for number in (_SHORT, steps)}
    return await _compare(environment, "step of a run", "sequence", definitions)


async def loops(environment: BenchEnvironment) -> list[FigureRow]:
    """Items in parallel, as many at a time in the long loop as in the short one."""
    items = environment.runs(_LONG)
    definitions = {number: loop_of(number, at_once=_SHORT) for number in (_SHORT, items)}
    return await _compare(environment, "item of a loop", "loop", definitions)


async def _compare(
    environment: BenchEnvironment, figure: str, name: str, definitions: dict[int, str]
) -> list[FigureRow]:
    steps = max(definitions)
    with trunkline_up(environment.new_folder()) as server:
        await server.set_up(environment.agent_url)
        for definition in definitions.values():
            await server.save(definition)
        await server.run(f"{name}_{_SHORT}")
        # Compiles the long one: once for a version, not once for a run.
        before = await _measure(server, name, _SHORT, steps // _SHORT // 5)
        long = await _measure(server, name, steps, 1)
        after = await _measure(server, name, _SHORT, steps // _SHORT // 5)
    short = [(early + late) / 2 for early, late in zip(before, after, strict=True)]
    return [
        FigureRow(
            f"{figure} of {steps:,}, {what}",
            f"{long[place]:.3f} ms",
            f"of {_SHORT} {short[place]:.3f} ms",
            f"{long[place] / short[place]:.2f}",
            "1.2",
        )
        for place, what in enumerate(("elapsed", "CPU"))
    ]


async def _measure(server: Server, name: str, steps: int, runs: int) -> tuple[float, float]:
    """Milliseconds for each step or item, elapsed and CPU."""
    cpu = server.process.cpu_seconds()
    began = time.perf_counter()
    for _ in range(runs):
        await server.run(f"{name}_{steps}")
    elapsed = time.perf_counter() - began
    return elapsed * 1_000 / steps / runs, (server.process.cpu_seconds() - cpu) * 1_000 / steps / runs


async def slow_disk(environment: BenchEnvironment) -> list[FigureRow]:
    """The job, 50 at a time, with 1 ms more for every fsync; both sides run through the same shim."""
    order = LoadOrder(50, environment.runs(2_000))
    folder = environment.new_folder()
    rates: dict[float, list[float]] = {0.0: [], _SYNC_DELAY: []}
    command = {
        delay: python(
            "bench.harness.without_api",
            environment.agent_url,
            str(folder / str(delay)),
            "--sync-delay",
            str(delay),
        )
        for delay in rates
    }
    with (
        child(command[0.0], folder / "fast.log") as fast,
        child(command[_SYNC_DELAY], folder / "slow.log") as slow,
    ):
        for number in range(environment.rounds):
            for delay, worker in ((0.0, fast), (_SYNC_DELAY, slow)):
                took = give_order(worker, order)
                if number:
                    rates[delay].append(took.per_second)
    ours, against = rates[_SYNC_DELAY], rates[0.0]
    figure = "workflows/s with 1 ms more for each fsync, no API"
    return [FigureRow(figure, spread(ours), f"without it {spread(against)}", ratio(ours, against), "0.6")]
