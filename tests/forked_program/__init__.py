"""
The program `trunkline`, started in a tenth of the time: a process that has imported it forks for each start.

A test starts `trunkline_command()` instead of `sys.executable -m trunkline`, in any way in which a process can be
started. What starts is a small client (`client.py`), which hands its arguments, environment, folder and standard
streams to the server (`server.py`), passes on signals, and ends as the forked process ends.

Start the program itself where its process matters: its memory, its session, its terminal, or what it imports.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

_STOP_SECONDS = 30.0


def trunkline_command() -> list[str]:
    """The words that start it; the arguments follow."""
    client = Path(__file__).with_name("client.py")
    return [sys.executable, "-I", "-S", str(client), str(_server_socket())]


@cache
def _server_socket() -> Path:
    """Starts the server of this test process; it ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="trunkline-fork-"))
    path = folder / "socket"
    command = [sys.executable, "-m", "tests.forked_program.server", str(path)]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert server.stdin is not None
    assert server.stdout is not None
    atexit.register(_stop, server, folder)
    with server.stdout as ready:
        assert ready.readline() == b"ready\n", "The server that forks for each start has ended."
    return path


def _stop(server: subprocess.Popen[bytes], folder: Path) -> None:
    assert server.stdin is not None
    server.stdin.close()
    server.wait(_STOP_SECONDS)
    shutil.rmtree(folder)
