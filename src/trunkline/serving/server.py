"""The HTTP server around an application: listens, says when it is ready, and stops when told."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp

from trunkline.errors import ConfigurationError
from trunkline.serving.connection import Connection

# Event streams and waiting calls have been told to end by then; whoever still holds a connection is cut.
_GRACE_SECONDS = 1
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


class _Server(uvicorn.Server):
    """Leaves the signals to the process, which has more to stop than this."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@asynccontextmanager
async def serving(
    app: ASGIApp,
    listener: socket.socket,
    connection: type[Connection],
    *,
    tls: ssl.SSLContext | None = None,
) -> AsyncGenerator[None]:
    """Serves while the block runs; at its end no request is taken any more, and those under way have ended."""
    config = uvicorn.Config(
        app,
        loop="none",
        http=connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # Nobody before us is trusted to say who the caller is.
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        ssl_context_factory=None if tls is None else _given(tls),
    )
    server = _Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]))
        await server.ready.wait()
        try:
            yield
        finally:
            server.should_exit = True


def _given(tls: ssl.SSLContext) -> Callable[[uvicorn.Config, Callable[[], ssl.SSLContext]], ssl.SSLContext]:
    def context(config: uvicorn.Config, usual: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        del config, usual
        return tls

    return context
