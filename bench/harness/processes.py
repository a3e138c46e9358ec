"""Child processes of the measurement: started, asked for their CPU time and memory, and stopped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


class Child:
    """A process that prints one line when it is ready."""

    def __init__(self, command: Sequence[str], stderr: Path) -> None:
        started = time.perf_counter()
        with stderr.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._stderr = stderr
        self.first_line = self.read_line()
        self.seconds_to_ready = time.perf_counter() - started

    def read_line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args} has ended: {self._stderr.read_text()[-2_000:]}")
        return line.strip()

    def write_line(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.process.pid)

    def resident_megabytes(self) -> float:
        return resident_megabytes(self.process.pid)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


@contextmanager
def child(command: Sequence[str], stderr: Path) -> Generator[Child]:
    process = Child(command, stderr)
    try:
        yield process
    finally:
        process.stop()


def python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def cpu_seconds(pid: int) -> float:
    """User and system time of all its threads."""
    return sum(_times(pid)[:2]) / _TICKS


def family_cpu_seconds(pid: int) -> float:
    """Of the process with its children, those that have ended included."""
    children = (_times(child)[:2] for child in _children(pid))
    return (sum(_times(pid)) + sum(map(sum, children))) / _TICKS


def resident_megabytes(pid: int) -> float:
    return _kilobytes(Path(f"/proc/{pid}/status"), "VmRSS") / 1024


def family_megabytes(pid: int) -> float:
    """Of the process with its children; what they share is counted once."""
    return sum(_kilobytes(Path(f"/proc/{one}/smaps_rollup"), "Pss") for one in (pid, *_children(pid))) / 1024


def _times(pid: int) -> list[int]:
    """User and system time, its own and that of children that have ended; nothing of one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return [0, 0, 0, 0]
    return [int(field) for field in fields[11:15]]


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _kilobytes(file: Path, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", file.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])
