"""What every figure needs: the agent, a folder on a real disk, and how much time there is."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.harness.processes import child, python


@dataclass(frozen=True)
class BenchEnvironment:
    agent_url: str
    folder: Path
    quick: bool
    # After which the memory is looked at.
    memory_runs: int

    def runs(self, number: int) -> int:
        return max(number // 4, 20) if self.quick else number

    @property
    def rounds(self) -> int:
        return 3 if self.quick else 5

    def new_folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.folder))


@contextmanager
def open_environment(*, quick: bool, memory_runs: int) -> Generator[BenchEnvironment]:
    with (
        tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder,
        child(python("bench.harness.agent"), Path(folder) / "agent.log") as agent,
    ):
        url = f"http://127.0.0.1:{agent.first_line}/agent"
        yield BenchEnvironment(url, Path(folder), quick, memory_runs)


def sync_ms(folder: Path) -> float:
    """What one small write and its fsync take on this disk."""
    times: list[float] = []
    with (folder / "sync").open("wb", buffering=0) as file:
        for _ in range(50):
            file.write(b"x" * 4096)
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return median(times) * 1_000
