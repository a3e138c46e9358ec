"""What one request, one command and one start cost."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median

from bench.harness.embedded import PROGRAM, Target, check_completed, drive, trunkline_up
from bench.harness.environment import BenchEnvironment
from bench.harness.http_client import request
from bench.harness.job import NO_CALL_INPUT, NO_CALL_WORKFLOW
from bench.harness.load import LoadOrder
from bench.harness.processes import child, python
from bench.harness.table import FigureRow, ratio, spread

_AT_A_TIME = 50
_REQUESTS = 6_000


async def execute(environment: BenchEnvironment) -> list[FigureRow]:
    """`POST …/execute` without waiting, of a run that calls no agent and is over in the same commit."""
    folder = environment.new_folder()
    path = f"/api/v1/workflows/{NO_CALL_WORKFLOW}/execute"
    order = LoadOrder(_AT_A_TIME, environment.runs(_REQUESTS))
    ours: list[float] = []
    bare: list[float] = []
    with ExitStack() as stack:
        server = stack.enter_context(trunkline_up(folder))
        await server.set_up(environment.agent_url)
        check_completed(await server.call(f"{path}?wait=30", NO_CALL_INPUT))
        (folder / "answer").write_bytes(await server.call(path, NO_CALL_INPUT))
        other = stack.enter_context(
            child(python("bench.floors.bare_asgi", str(folder / "answer")), folder / "bare.log")
        )
        for number in range(environment.rounds + 1):
            took = await drive([_target(server.url, path)], order)
            took_bare = await drive([_target(other.first_line, path)], order)
            if number:
                ours.append(took.per_second)
                bare.append(took_bare.per_second)
    figure = "POST execute/s, a run without calls"
    return [FigureRow(figure, spread(ours), f"bare ASGI {spread(bare)}", ratio(ours, bare), "0.4")]


def _target(url: str, path: str) -> Target:
    return Target(url, request(url, path, NO_CALL_INPUT))


async def command(environment: BenchEnvironment) -> list[FigureRow]:
    """`trunkline runs list` until its first output."""
    with trunkline_up(environment.new_folder()) as server:
        await server.set_up(environment.agent_url)
        await server.run("bench")
        listing = [str(PROGRAM), "runs", "list", "--url", server.url]
        ours, python_alone = _in_turn(listing, [sys.executable, "-c", "print()"], environment.rounds + 2)
    against = f"python alone {median(python_alone):.0f} ms"
    return [
        FigureRow(
            "trunkline runs list, first output", spread(ours, ".0f", " ms"), against, "", "under 200 ms"
        )
    ]


def _in_turn(ours: Sequence[str], other: Sequence[str], rounds: int) -> tuple[list[float], list[float]]:
    times = [(_first_output_ms(ours), _first_output_ms(other)) for _ in range(rounds)]
    return [mine for mine, _ in times], [its for _, its in times]


def _first_output_ms(command_line: Sequence[str]) -> float:
    began = time.perf_counter()
    with subprocess.Popen(command_line, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.read(1)
        seconds = time.perf_counter() - began
        process.stdout.read()
    if not first or process.returncode != 0:
        raise RuntimeError(f"{command_line} failed.")
    return seconds * 1_000


async def start(environment: BenchEnvironment) -> list[FigureRow]:
    """`trunkline up` until it says that it is ready: with a new folder, and with one that is there."""
    new: list[float] = []
    again: list[float] = []
    for _ in range(environment.rounds):
        folder = environment.new_folder()
        for times in (new, again):
            with trunkline_up(folder) as server:
                times.append(server.process.seconds_to_ready)
    return [
        FigureRow("trunkline up until ready, new folder", spread(new, ".2f", " s")),
        FigureRow("  folder that is there", spread(again, ".2f", " s")),
    ]
