"""A forked `trunkline` does what the program does, and ends when its client does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from deploy.local.processes import wait_until
from tests.forked_program import trunkline_command

_GONE_SECONDS = 60.0


def result(command: list[str], folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*command, *arguments],
        input="a value\n",
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "TRUNKLINE_DATA": "here"},
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "arguments", [["keys", "list"], ["secrets", "set", "a", "--url", "http://127.0.0.1:9"], ["no-command"]]
)
def test_it_says_and_returns_what_the_program_does(tmp_path: Path, arguments: list[str]) -> None:
    program = [sys.executable, "-m", "trunkline"]
    assert result(trunkline_command(), tmp_path, *arguments) == result(program, tmp_path, *arguments)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_signal_ends_it_and_what_it_stands_for(tmp_path: Path, number: int, code: int) -> None:
    command = [*trunkline_command(), "up", "--port", "0", "--data", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        process.send_signal(number)
        assert process.wait() == code
    assert wait_until(lambda: not _listens(port), _GONE_SECONDS)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
