"""
Starts lives of Trunkline, one after the other: it imports everything once and forks for each, so that a life
begins within a tenth of a second.

It reads an order a line from stdin and says on stdout:

    pid 4711            a life has begun
    ready http://…      it takes work
    exit 137            it has ended; a negative number is the signal that ended it

A life that is not ended by its injector goes on until it is killed, or stopped with SIGTERM.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import sys
import traceback
from datetime import timedelta
from pathlib import Path

import msgspec
import uvloop
from tests.crash.crash_points import CrashInjector, with_crash_points

# Loaded late by the program itself; here it is loaded once, before the first fork.
import trunkline.api.app as _door  # pyright: ignore[reportUnusedImport]  # noqa: F401
import trunkline.stores.postgres.store as _postgres  # pyright: ignore[reportUnusedImport]  # noqa: F401
import trunkline.stores.sqlite.store as _sqlite  # pyright: ignore[reportUnusedImport]  # noqa: F401
import trunkline.wiring.kafka_messaging as _wires  # pyright: ignore[reportUnusedImport]  # noqa: F401
from trunkline.bridge.lease_heartbeat import Lease
from trunkline.telemetry.logs import configure_logs
from trunkline.testing import running_system
from trunkline.wiring import LivenessTimeouts

_PR_SET_PDEATHSIG = 1


# A life that follows one that was killed does not wait long for it to be given up.
QUICK = LivenessTimeouts(
    lease=Lease(lasts=timedelta(seconds=1), beat_every=timedelta(seconds=0.3)),
    session=timedelta(seconds=1.5),
    resend_after=timedelta(seconds=3),
    callback_claim=timedelta(seconds=2),
)


class StartCommand(msgspec.Struct):
    data: str
    point: str | None = None
    occurrence: int = 0
    # TRUNKLINE_… variables.
    settings: dict[str, str] = {}


def main() -> None:
    _die_with_parent()
    # Whatever is printed goes to stderr: stdout is for the protocol alone.
    stdout = os.dup(1)
    os.dup2(2, 1)
    # A collection in a life would look at all that is loaded, and so copy every page of it.
    gc.freeze()
    for line in sys.stdin:
        order = msgspec.json.decode(line, type=StartCommand)
        pid = os.fork()
        if pid == 0:
            _live(order, stdout)
        _, status = os.waitpid(pid, 0)
        _say(stdout, f"exit {os.waitstatus_to_exitcode(status)}")


def _say(stdout: int, words: str) -> None:
    os.write(stdout, f"{words}\n".encode())


def _live(order: StartCommand, stdout: int) -> None:
    _die_with_parent()
    _say(stdout, f"pid {os.getpid()}")
    code = 1
    try:
        os.environ.update(order.settings)
        configure_logs("warning", "json")
        uvloop.run(_run(order, stdout))
        code = 0
    except Exception:  # noqa: BLE001 - the end of the process; its exit code and stderr tell
        traceback.print_exc()
    finally:
        # Never back into the parent's loop.
        os._exit(code)


async def _run(order: StartCommand, stdout: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    interceptors = with_crash_points(CrashInjector(order.point, order.occurrence), QUICK)
    async with running_system(Path(order.data), interceptors=interceptors) as system:
        _say(stdout, f"ready {system.url}")
        await stop.wait()


def _die_with_parent() -> None:
    """A test run that is killed leaves no process behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main()
