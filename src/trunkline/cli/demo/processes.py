"""
Child processes that print their URL when they are ready, and that end when we do.

Each runs in a session of its own: Ctrl-C reaches only the demo, which then stops its children in order.
"""

from __future__ import annotations

import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn, cast

from trunkline.cli.failures import CliError

# A cold start on a busy machine can take long.
START_SECONDS = 60.0
# After it a child that ignores SIGTERM is killed.
STOP_SECONDS = 15.0
_LOG_LINES = 20


@contextmanager
def running(name: str, arguments: Sequence[str], log: Path) -> Generator[str]:
    """Runs `python -m ARGUMENTS`; gives its URL. What it writes to stderr goes to `log`."""
    with log.open("wb") as stderr:
        child = subprocess.Popen(  # noqa: S603  (our own program with our own arguments)
            [sys.executable, "-m", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            bufsize=0,  # select sees what a buffer would hide
        )
    try:
        yield _url(name, child, log)
    finally:
        _stop(child)


@contextmanager
def sigterm_as_exit() -> Generator[None]:
    """Lets SIGTERM unwind the stack like Ctrl-C, so that no child outlives us."""

    def leave(_signal: int, _frame: FrameType | None) -> NoReturn:
        sys.exit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _url(name: str, child: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + START_SECONDS
    line = _first_line(cast("IO[bytes]", child.stdout), until)
    if line.endswith(b"\n"):
        return line.decode().strip()
    last_lines = "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
    limit = f" within {START_SECONDS:.0f} s" if time.monotonic() >= until else ""
    raise CliError(
        f"{name} did not start{limit}\n{last_lines}".rstrip(),
        fix="Check this machine with: trunkline doctor",
    )


def _first_line(stream: IO[bytes], until: float) -> bytes:
    """What has come when the line is complete, the stream has ended, or the time is up."""
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, until - time.monotonic())):
                return line
            byte = stream.read(1)
            if not byte:
                return line
            line += byte
    return line


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if child.stdout is not None:
        child.stdout.close()
