"""`trunkline demo`, from nothing to a result, and nothing left behind."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from trunkline.api.middleware.web_ui_files import is_there
from trunkline.cli.demo.processes import running
from trunkline.cli.demo.walkthrough import how_to_go_on
from trunkline.cli.rest.client import Client

DEMO = [sys.executable, "-m", "trunkline", "demo"]


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def processes_with(folder: Path) -> list[int]:
    """Processes that were started with the folder in their environment."""
    mark = f"TMPDIR={folder}".encode()
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) != os.getpid():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_the_demo_runs_through_all_four_agents(temporary_folder: Path) -> None:
    demo = subprocess.run(DEMO, capture_output=True, text=True, check=False)
    assert demo.returncode == 0, demo.stderr
    assert "check retries" in demo.stdout
    assert "figures working" in demo.stdout
    assert "translate skipped" in demo.stdout
    table = [line.split() for line in demo.stdout.splitlines() if "COMPLETED" in line]
    assert [(row[0], row[3]) for row in table] == [
        ("research", "1"),
        ("figures", "1"),
        ("check", "3"),
        ("write", "1"),
        ("approve", "1"),
        ("publish", "1"),
    ]
    assert "approve was answered by a person (approve)" in demo.stdout
    assert '"method": "message/send"' in demo.stdout
    assert "tidal power: a short report" in demo.stdout
    assert list(temporary_folder.iterdir()) == []
    assert processes_with(temporary_folder) == []


def test_the_demo_as_json_is_the_run(temporary_folder: Path) -> None:
    demo = subprocess.run([*DEMO, "--json"], capture_output=True, text=True, check=True)
    run = json.loads(demo.stdout)
    assert run["status"] == "COMPLETED"
    assert {step["protocol"] for step in run["steps"]} == {"jsonrpc-2.0", "simple-a2a", None}


def test_the_demo_at_a_trunkline_that_runs_leaves_it_as_it_was_but_for_the_run(
    temporary_folder: Path, trunkline_url: str
) -> None:
    command = [*DEMO, "--url", trunkline_url, "--json"]
    # The second finds nothing of the first in its way.
    runs = [subprocess.run(command, capture_output=True, text=True, check=False) for _ in range(2)]
    assert [run.returncode for run in runs] == [0, 0], runs[-1].stderr
    client = Client(trunkline_url)
    assert client.agents().items == []
    assert {client.run(json.loads(run.stdout)["id"])["status"] for run in runs} == {"COMPLETED"}
    assert list(temporary_folder.iterdir()) == []
    assert processes_with(temporary_folder) == []


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_stopped_leaves_nothing_behind(temporary_folder: Path, stop: signal.Signals) -> None:
    with subprocess.Popen(DEMO, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if b"research started" in line:
                break
        demo.send_signal(stop)
        demo.communicate()
    assert demo.returncode == 128 + stop
    assert list(temporary_folder.iterdir()) == []
    assert processes_with(temporary_folder) == []


def test_what_the_demo_says_to_type_next_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    agent = ["trunkline.cli.demo.simple_a2a_agent"]
    up = ["trunkline", "up", "--port", "0", "--data", "data"]
    with (
        running("Trunkline", up, tmp_path / "up.log") as url,
        running("Writer", agent, tmp_path / "a.log") as writer,
    ):
        monkeypatch.setenv("TRUNKLINE_URL", url)
        commands = how_to_go_on({}, None)  # pyright: ignore[reportArgumentType] - a demo that is gone names no run
        program = shlex.quote(sys.executable) + " -m trunkline"
        for purpose in ("register the agent", "write a workflow", "run the workflow"):
            command = commands[purpose].replace("http://127.0.0.1:8080/agent", writer)
            if not command.startswith("echo"):
                command = program + command[command.index(" ") :]
            done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
            assert done.returncode == 0, done.stderr
    assert "tidal power: a short report" in done.stdout


def test_a_demo_that_stays_says_where_to_look_in_a_browser(temporary_folder: Path) -> None:
    with subprocess.Popen(
        [*DEMO, "--keep"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stderr is not None
        told = next(line for line in demo.stderr if "a browser" in line or "make ui" in line)
        demo.send_signal(signal.SIGTERM)
        demo.communicate()
    assert ("/runs/" in told) == is_there()
    assert processes_with(temporary_folder) == []
