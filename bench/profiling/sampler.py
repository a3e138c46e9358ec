"""
Where the time goes: samples of the event loop's thread, one for every few milliseconds of CPU time.

A signal interrupts the program between two instructions of Python, so what C code does counts for the line that
called it. Of other threads only the CPU time is seen, which also counts towards the samples.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

_PERIOD = 0.001
_MOST_LINES = 45
_SOURCES = Path(__file__).resolve().parents[2] / "src"


class _Samples:
    def __init__(self) -> None:
        self.total = 0
        self.own: Counter[str] = Counter()
        self.cumulative: Counter[str] = Counter()
        self.modules: Counter[str] = Counter()

    def take(self, number: int, frame: FrameType | None) -> None:
        del number
        self.total += 1
        if frame is not None:
            self.own[_line(frame)] += 1
            self.modules[_module(frame)] += 1
        functions: set[str] = set()
        while frame is not None:
            functions.add(_function(frame))
            frame = frame.f_back
        self.cumulative.update(functions)

    def show(self) -> None:
        for title, counts in (
            ("by module, own", self.modules),
            ("by line, own", self.own),
            ("by function, cumulative", self.cumulative),
        ):
            print(f"\n{title} ({self.total} samples)", file=sys.stderr)
            for name, count in counts.most_common(_MOST_LINES):
                print(f"{100 * count / self.total:6.1f} %  {name}", file=sys.stderr)
        print("\nby thread, CPU seconds since the start", file=sys.stderr)
        for name, seconds in _thread_seconds():
            print(f"{seconds:8.2f}  {name}", file=sys.stderr)


def _thread_seconds() -> list[tuple[str, float]]:
    """Libraries name their threads; Python's have the names that the program gave them."""
    known = {thread.native_id: thread.name for thread in threading.enumerate()}
    found: list[tuple[str, float]] = []
    for task in Path("/proc/self/task").iterdir():
        nanoseconds = int((task / "schedstat").read_text().split()[0])
        name = known.get(int(task.name)) or (task / "comm").read_text().strip()
        found.append((name, nanoseconds / 1e9))
    ended = time.process_time() - sum(seconds for _, seconds in found)
    return [*sorted(found, key=lambda thread: -thread[1]), ("those that have ended", ended)]


def _place(frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename)
    if path.is_relative_to(_SOURCES):
        return str(path.relative_to(_SOURCES))
    parts = path.parts
    if "site-packages" in parts:
        return "/".join(parts[parts.index("site-packages") + 1 :])
    return "/".join(parts[-2:])


def _line(frame: FrameType) -> str:
    """The line with the two that called it: much ends in a few small functions."""
    places: list[str] = []
    caller: FrameType | None = frame
    while caller is not None and len(places) < 3:
        places.append(f"{_place(caller)}:{caller.f_lineno}")
        caller = caller.f_back
    return " < ".join(places)


def _function(frame: FrameType) -> str:
    return f"{_place(frame)}:{frame.f_code.co_firstlineno} {frame.f_code.co_name}"


def _module(frame: FrameType) -> str:
    place = _place(frame)
    return place if place.startswith("trunkline") else place.split("/", 1)[0]


@contextmanager
def sampling() -> Generator[None]:
    """Samples while the block runs; prints what it has seen to stderr at its end."""
    samples = _Samples()
    signal.signal(signal.SIGPROF, samples.take)
    signal.setitimer(signal.ITIMER_PROF, _PERIOD, _PERIOD)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        samples.show()
