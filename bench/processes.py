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
        """User and system time of all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def resident_megabytes(self) -> float:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) / 1024

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
