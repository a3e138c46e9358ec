"""The HTTP server around an application: listens, says when it is ready, and stops when told."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress

import uvicorn
from starlette.types import ASGIApp

from trunkline.errors import ConfigurationError
from trunkline.serving.acceptor import Acceptor
from trunkline.serving.body_draining import DrainsRequestBody
from trunkline.serving.connection import HttpConnection
from trunkline.serving.connection_limits import DEFAULT_LIMITS, ConnectionLimits
from trunkline.serving.tls import ServerTls

# Event streams and waiting calls have been asked to end by then; remaining connections are closed.
_GRACE_SECONDS = 1
# The answers' Date has no finer step.
_TICK_SECONDS = 1.0
# Connections that are told to end and have nothing under way are gone after a turn or two of the loop.
_LOOKS = 10
_LOOK_SECONDS = 0.002
_BACKLOG = 2_048


def listen(host: str, port: int) -> socket.socket:
    """Takes the address, so that a port in use is known before anything else is opened."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as exc:
        raise ConfigurationError(
            f"Cannot listen on {host}:{port}: {exc.strerror or exc}.",
            fix="Stop what uses the port, or choose another with --port (0 takes a free one).",
        ) from exc
    listener.setblocking(False)
    return listener


def base_url(listener: socket.socket, scheme: str = "http") -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


class _HttpServer(uvicorn.Server):
    """
    Leaves the signals to the process, which has more to stop than this; told to stop, it does so at once.

    Its connections are accepted by `Acceptor`, not by a server of the event loop.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        connection: type[HttpConnection],
        limits: ConnectionLimits,
        tls: ServerTls | None,
    ) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self.servers = []
        self._connection = connection
        self._limits = limits
        self._tls = tls
        self._acceptors: list[Acceptor] = []
        self._told = asyncio.Event()

    def stop(self) -> None:
        self.should_exit = True
        self._told.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in sockets or []:
            acceptor = Acceptor(listener, self._make_connection, self._limits, self._tls)
            acceptor.start()
            self._acceptors.append(acceptor)
        self.started = True
        self.ready.set()

    def _make_connection(self) -> HttpConnection:
        return self._connection(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), _TICK_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Where nothing is under way, without the tenth of a second that uvicorn waits before it looks."""
        for acceptor in self._acceptors:
            acceptor.stop()
        for listener in sockets or []:
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        for _ in range(_LOOKS):
            if not self.server_state.connections and not self.server_state.tasks:
                return
            await asyncio.sleep(_LOOK_SECONDS)
        await super().shutdown(sockets)


@asynccontextmanager
async def serving(
    app: ASGIApp,
    listener: socket.socket,
    connection: type[HttpConnection],
    *,
    limits: ConnectionLimits = DEFAULT_LIMITS,
    tls: ServerTls | None = None,
) -> AsyncGenerator[None]:
    """Serves while the block runs; at its end no request is taken any more, and those under way have ended."""
    config = uvicorn.Config(
        DrainsRequestBody(app),
        loop="none",
        http=connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # Headers of proxies are not trusted to say who the caller is.
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    server = _HttpServer(config, connection, limits, tls)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]))
        await server.ready.wait()
        try:
            yield
        finally:
            server.stop()


def stop_signal() -> asyncio.Event:
    """Set when the process is asked to stop: SIGTERM or Ctrl-C."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def tune_garbage_collector() -> None:
    """For a process that has loaded all that it needs."""
    # What is loaded by now stays for good, and what a run makes is freed without the collector: looking through
    # all of it again and again took a sixth of the time. No collection before it: it would find next to nothing,
    # and delay the first clients by 40 ms.
    gc.freeze()
    gc.set_threshold(20_000, 25, 50)
