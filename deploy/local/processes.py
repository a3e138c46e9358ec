"""
A service's process: in a group of its own, its output in a file, and gone when we are.

A guard, which is a shell that waits for the end of a pipe that only we hold open, ends the service when we die in
whatever way. (Linux's parent-death signal would not do: it also fires when only the thread that started it ends.)
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from deploy.local.errors import ServiceFailed

_LOG_LINES = 30
# How often a condition is looked at again.
_PAUSE_SECONDS = 0.05
# After it a process that was killed is said to be immortal.
_KILL_SECONDS = 30.0

# The name of the signal, then the service's group; one that does not heed the signal is killed.
_GUARD = """
read -r _
kill -s "$1" -- "-$2"
for _ in 1 2 3 4 5; do
  kill -s 0 -- "-$2" || exit 0
  sleep 1
done
kill -s KILL -- "-$2"
"""


class Guard:
    """Sends the group a signal when we are gone, unless it is dismissed before."""

    def __init__(self, group: int, number: signal.Signals) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own words
            ["/bin/sh", "-c", _GUARD, "guard", number.name.removeprefix("SIG"), str(group)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


class ServiceProcess:
    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdout: Path | None = None,
        last_signal: signal.Signals = signal.SIGKILL,
    ) -> None:
        """Both outputs go to `log`, or to `stdout` what is written there; `last_signal` is the one of the guard."""
        self.log = log
        with log.open("ab") as output, (stdout or log).open("ab") as printed:
            self._begin = output.tell()
            self._process = subprocess.Popen(  # noqa: S603 - a service's own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=output,
                cwd=log.parent,
                env=None if env is None else {**os.environ, **env},
                start_new_session=True,
                user=user,
                group=_group_of(user),
                extra_groups=None if user is None else [],
            )
        self._guard = Guard(self.pid, last_signal)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self, number: signal.Signals, seconds: float) -> None:
        """Sends the signal; a process that is still there after `seconds` is killed with its group."""
        self._process.send_signal(number)
        # One that a test has stopped would never see the signal.
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait(_KILL_SECONDS)
        self._guard.dismiss()

    def wait_until(self, ready: Callable[[], bool], seconds: float, what: str) -> None:
        """Raises `ServiceFailed` when the process ends first, or the time is up; it is gone then."""
        if wait_until(lambda: not self.running or ready(), seconds) and self.running:
            return
        problem = f"is not ready after {seconds:.0f} s" if self.running else "ended before it was ready"
        self.end(signal.SIGKILL, _KILL_SECONDS)
        raise ServiceFailed(f"{what} {problem}. Its log {self.log} ends:\n{self.log_tail()}")

    def log_tail(self) -> str:
        """The last lines of what this process has written."""
        with self.log.open("rb") as written:
            written.seek(self._begin)
            return "\n".join(written.read().decode(errors="replace").splitlines()[-_LOG_LINES:])


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it came true in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def _group_of(user: str | None) -> int | None:
    if user is None:
        return None
    import pwd  # noqa: PLC0415 - not on every system; where it is missing, no user is root

    return pwd.getpwnam(user).pw_gid
