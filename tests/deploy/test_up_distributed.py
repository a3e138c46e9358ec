"""`make up-distributed`: every role on a real Kafka and PostgreSQL, the demo on them, and nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from deploy.local.folders import service_folder
from deploy.local.postgres import PostgresServer
from tests.deploy.leftover_processes import processes_with

ROOT = Path(__file__).parents[2]
UP = [sys.executable, "-m", "deploy.local.up"]


@pytest.fixture
def temporary(kafka_servers: str, postgres: PostgresServer) -> Generator[Path]:
    """Where all that it starts keeps its files; only for machines that have what it needs."""
    with service_folder("test") as folder:
        yield folder


def environment(temporary: Path) -> dict[str, str]:
    # A setting of another Trunkline must not reach this one.
    return {**os.environ, "TMPDIR": str(temporary), "TRUNKLINE_BROKER": "kafka://nowhere:1"}


def test_the_demo_runs_across_the_processes_and_everything_is_stopped_after_it(temporary: Path) -> None:
    up = subprocess.run(
        [*UP, "--once"], env=environment(temporary), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert up.returncode == 0, up.stdout + up.stderr
    assert "tidal power: a short report" in up.stdout
    started = re.findall(r"^  (\S+) +\S+ +process \d+$", up.stderr, re.MULTILINE)
    assert started == [
        "PostgreSQL", "Kafka", "bridge-1", "bridge-2", "executor-1", "executor-2", "api",
    ]  # fmt: skip
    stopped = re.findall(r"^Stopping (\S+)$", up.stderr, re.MULTILINE)
    assert stopped == ["api", "executor-2", "executor-1", "bridge-2", "bridge-1"]
    assert list(temporary.iterdir()) == []
    assert processes_with(temporary) == []


def test_it_stays_until_ctrl_c(temporary: Path) -> None:
    with subprocess.Popen(
        UP, env=environment(temporary), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as up:
        assert up.stdout is not None
        said: list[str] = []
        for line in up.stdout:
            said.append(line)
            if "until Ctrl-C" in line:
                break
        up.send_signal(signal.SIGINT)
        said += up.stdout.readlines()
    assert up.returncode == 0, "".join(said)
    assert list(temporary.iterdir()) == []
    assert processes_with(temporary) == []
