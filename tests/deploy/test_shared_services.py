"""All the workers of a session share one Kafka and one PostgreSQL, and leave nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from deploy.local.folders import service_folder
from deploy.local.postgres import PostgresServer
from tests.deploy.leftover_processes import processes_with

ROOT = Path(__file__).parents[2]

# Waits for the other, so that each of the two is run by a worker of its own.
TEST = """
import json, os, pathlib
from deploy.local.processes import wait_until

FOLDER = pathlib.Path({folder!r})

def test_that_asks_for_services(kafka_servers, postgres_url, topics):
    told = {{"servers": kafka_servers, "store": postgres_url, "topic": topics.tasks}}
    unfinished = FOLDER / f"{{os.getpid()}}.tmp"
    unfinished.write_text(json.dumps(told))
    unfinished.rename(FOLDER / f"{{os.getpid()}}.json")
    assert wait_until(lambda: len(list(FOLDER.glob("*.json"))) == 2, 120)
"""


def test_two_workers_share_the_services_and_leave_nothing_behind(
    kafka_servers: str, postgres: PostgresServer
) -> None:
    with service_folder("test") as folder:
        temporary = folder / "temporary"
        temporary.mkdir()
        for name in ("test_one.py", "test_other.py"):
            (folder / name).write_text(TEST.format(folder=str(folder)))
        options = [
            "-p",
            "tests.services",
            "-p",
            "no:cacheprovider",
            "-n",
            "2",
            "-c",
            str(folder / "pytest.ini"),
        ]
        (folder / "pytest.ini").write_text("[pytest]\n")
        session = subprocess.run(
            [sys.executable, "-m", "pytest", *options, "--basetemp", str(folder / "base"), str(folder)],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert session.returncode == 0, session.stdout + session.stderr
        first, second = (json.loads(file.read_text()) for file in folder.glob("*.json"))
        assert first["servers"] == second["servers"] != kafka_servers
        assert first["store"].rsplit("/", 1)[0] == second["store"].rsplit("/", 1)[0]
        assert first["store"] != second["store"]
        assert first["topic"] != second["topic"]
        assert list(temporary.iterdir()) == []
        assert processes_with(temporary) == []
