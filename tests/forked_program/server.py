"""
Imports the program once, and forks for each start that a client asks for.

    python -m tests.forked_program.server SOCKET

It ends when its stdin does. A forked process is killed when its client ends first.
"""

from __future__ import annotations

import atexit
import gc
import marshal
import os
import selectors
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

import trunkline.cli
from trunkline.cli.app import build_app, load_commands

_STREAMS = 3
# What commands import when they need it; here it is imported once, before the first fork.
_IMPORTED_LATE = (
    "trunkline.cli.rendering.live_view",
    "trunkline.cli.rest.client",
    "trunkline.stores.postgres.store",
    "trunkline.stores.sqlite.store",
    "trunkline.wiring.kafka_messaging",
    "trunkline.wiring.serve",
)


@dataclass(frozen=True)
class Start:
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    streams: list[int]


class ForkServer:
    def __init__(self, path: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(64)
        # The interpreter writes to it when a forked process has ended.
        self._ended, self._wakeup = os.pipe()
        os.set_blocking(self._wakeup, False)
        signal.signal(signal.SIGCHLD, _notice)
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        # By the ids of the forked processes.
        self._clients: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        for file in (sys.stdin.fileno(), self._listener, self._ended):
            self._selector.register(file, selectors.EVENT_READ)

    def next_start(self) -> Start:
        """Returns in each forked process. Raises `SystemExit` in this one when its stdin ends."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == sys.stdin.fileno():
                    self._kill_all()
                    raise SystemExit
                if key.fileobj == self._ended:
                    os.read(self._ended, 4_096)
                    self._reap()
                elif key.fileobj is self._listener:
                    client, _ = self._listener.accept()
                    start = _read_start(client)
                    if self._fork(client):
                        return start
                    for stream in start.streams:
                        os.close(stream)
                else:
                    self._client_has_ended(key.fileobj)

    def _fork(self, client: socket.socket) -> bool:
        """True in the forked process."""
        process = os.fork()
        if process:
            self._clients[process] = client
            self._selector.register(client, selectors.EVENT_READ)
            with suppress(ConnectionError):
                client.sendall(process.to_bytes(4, "big"))
            return False
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for each in (self._listener, client, *self._clients.values()):
            each.close()
        os.close(self._ended)
        os.close(self._wakeup)
        return True

    def _reap(self) -> None:
        while self._clients:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            client = self._clients.pop(process)
            self._selector.unregister(client)
            with suppress(ConnectionError):
                client.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
            client.close()

    def _client_has_ended(self, client: object) -> None:
        """It was killed, for instance."""
        process, connection = next(found for found in self._clients.items() if found[1] is client)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        del self._clients[process]
        self._selector.unregister(connection)
        connection.close()

    def _kill_all(self) -> None:
        for process in self._clients:
            os.kill(process, signal.SIGKILL)


def _notice(_number: int, _frame: object) -> None:
    """A signal with a handler wakes the selector up."""


def _read_start(client: socket.socket) -> Start:
    head, streams, _, _ = socket.recv_fds(client, 4, _STREAMS)
    size = int.from_bytes(head, "big")
    received = b""
    while len(received) < size:
        part = client.recv(size - len(received))
        if not part:
            break
        received += part
    arguments, environment, folder = marshal.loads(received)  # noqa: S302 - from our own client
    return Start(arguments, environment, folder, streams)


def _become(start: Start) -> None:
    """As if the process had been started with it."""
    for number, stream in enumerate(start.streams):
        os.dup2(stream, number)
        os.close(stream)
    # As the interpreter makes them: those of this process know what their files were.
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    os.chdir(start.folder)
    os.environ.clear()
    os.environ.update(start.environment)
    time.tzset()
    tempfile.tempdir = None
    sys.argv = ["trunkline", *start.arguments]


def _run() -> NoReturn:
    """
    Runs the program to its end, with its threads and what it has registered for its exit.

    The interpreter is not taken down: that would touch, and so copy, all that the server has imported.
    """
    code: object = 1
    try:
        trunkline.cli.main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - as at the top of any program
        traceback.print_exc()
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join()
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):
            stream.flush()
    os._exit(code if isinstance(code, int) else 1 if code else 0)


def main(path: str) -> None:
    load_commands(build_app())
    for module in _IMPORTED_LATE:
        import_module(module)
    server = ForkServer(path)
    # A collection in a forked process would look at all that is imported, and so copy every page of it.
    gc.freeze()
    assert threading.active_count() == 1
    os.write(1, b"ready\n")
    # Stdout belongs to the forked processes.
    os.dup2(2, 1)
    _become(server.next_start())
    _run()


if __name__ == "__main__":
    main(sys.argv[1])
