"""
`trunkline`, with a thread that measures for how long its event loop answers nobody.

    python -m tests.crash.watched_server FILE up --port …

The thread asks the loop for a sign of life again and again. What counts is the CPU time that the loop's thread takes
until it gives one: on a busy machine the time on the clock says more about the machine. Signs that took longer than
`_REPORTED_MS` are written to FILE, one JSON object per line, with what the loop was doing at that time.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from trunkline.cli import main

_REPORTED_MS = 20.0
_BETWEEN_SECONDS = 0.01
_STACK_DEPTH = 14


class LoopPause(msgspec.Struct, frozen=True):
    """One time for which the loop answered nobody."""

    cpu_ms: float
    # The frames of the loop's thread, outermost first: once for each sample.
    samples: list[list[str]]


def pauses_in(file: Path) -> list[LoopPause]:
    if not file.exists():
        return []
    return [msgspec.json.decode(line, type=LoopPause) for line in file.read_bytes().splitlines()]


def _watch(loop: asyncio.AbstractEventLoop, thread: int, file: Path) -> None:
    clock = time.pthread_getcpuclockid(thread)
    with file.open("ab", buffering=0) as reported:
        while not loop.is_closed():
            began = time.clock_gettime(clock)
            answered = threading.Event()
            try:
                loop.call_soon_threadsafe(answered.set)
            except RuntimeError:
                return
            samples: list[list[str]] = []
            while not answered.wait(_BETWEEN_SECONDS):
                if (time.clock_gettime(clock) - began) * 1000 > _REPORTED_MS and len(samples) < 50:
                    samples.append(_stack(thread))
                if loop.is_closed():
                    return
            cpu_ms = (time.clock_gettime(clock) - began) * 1000
            if cpu_ms > _REPORTED_MS:
                reported.write(msgspec.json.encode(LoopPause(round(cpu_ms, 1), samples)) + b"\n")
            time.sleep(_BETWEEN_SECONDS)


def _stack(thread: int) -> list[str]:
    frame = sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage] - there is no other way
    found = traceback.extract_stack(frame)[-_STACK_DEPTH:]
    return [f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in found]


def _watched(file: Path) -> None:
    run = uvloop.run

    def run_watched(program: Coroutine[Any, Any, Any]) -> None:
        async def watched() -> None:
            asked = (asyncio.get_running_loop(), threading.get_ident(), file)
            threading.Thread(target=_watch, args=asked, daemon=True).start()
            await program

        run(watched())

    uvloop.run = run_watched


if __name__ == "__main__":
    _watched(Path(sys.argv.pop(1)))
    main()
