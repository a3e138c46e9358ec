"""
The connections of a transport: idle ones are kept for a few seconds, and only so many are open at once.

What a connection carries is up to its user. The pool knows hosts, addresses and TLS.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import Literal

from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.transports.failures import ConnectFailed, LookupFailed
from trunkline.transports.http1.connection import AgentConnection
from trunkline.transports.http1.dialing import dial
from trunkline.transports.http1.dns_resolver import GuardedResolver
from trunkline.transports.http1.tls_contexts import TlsContexts

# Under the 5 s after which uvicorn and Node close an idle connection: a request that crosses the close
# is lost, and it is not known whether it was read.
_KEEP_ALIVE_SECONDS = 4.0
_SWEEP_SECONDS = 1.0


class Origin:
    """What connections are kept apart by: a host, its port, and whom TLS trusts and shows."""

    __slots__ = ("address", "host", "idle", "port", "scheme", "tls")

    def __init__(
        self,
        scheme: Literal["http", "https"],
        host: str,
        port: int,
        address: str | None,
        tls: TlsConfig | None,
    ) -> None:
        """`address`: the host, if it is one; it must have been checked."""
        self.scheme = scheme
        self.host = host
        self.port = port
        self.address = address
        self.tls = tls
        # The last one used comes first.
        self.idle: list[AgentConnection] = []


class AgentConnectionPool:
    def __init__(self, resolver: GuardedResolver, ssl_context: ssl.SSLContext | None, limit: int) -> None:
        """`limit`: how many connections may be in use at once; others wait for their turn."""
        self._loop = asyncio.get_running_loop()
        self._resolver = resolver
        self._default_context = ssl_context
        self._contexts = TlsContexts()
        self._limit = limit
        self._busy = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        # Of all origins, the longest idle first.
        self._idle: dict[AgentConnection, Origin] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_closed = False

    def take(self, origin: Origin) -> AgentConnection | None:
        """An idle connection; None: `connect` opens one."""
        if self._busy >= self._limit or not origin.idle:
            return None
        connection = self._take_idle(origin)
        if connection is not None:
            self._busy += 1
        return connection

    async def connect(self, origin: Origin) -> AgentConnection:
        """
        A new connection, or an idle one if there is one by the time it is this caller's turn. It is open: what is sent
        before anything else is awaited goes to the socket.

        Raises `ConnectFailed`, or `TransportError`: the host may not be called.
        """
        if self._busy < self._limit:
            self._busy += 1
        else:
            await self._wait_for_turn()
        try:
            return self._take_idle(origin) or await self._open(origin)
        except BaseException:
            self._end_turn()
            raise

    def release(self, connection: AgentConnection, origin: Origin) -> None:
        """The caller of `take` or `connect` is done; the connection is kept if it can serve another request."""
        if connection.is_reusable and not self._is_closed:
            connection.end_request()
            connection.idle_since = monotonic()
            origin.idle.append(connection)
            self._idle[connection] = origin
            if self._sweeper is None:
                self._sweeper = self._loop.call_later(_SWEEP_SECONDS, self._sweep)
        else:
            connection.abort()
        if self._waiters:
            self._end_turn()
        else:
            self._busy -= 1

    async def close(self) -> None:
        self._is_closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in self._idle:
            connection.abort()
        self._idle.clear()
        # Until the event loop has closed the sockets.
        await asyncio.sleep(0)

    def _take_idle(self, origin: Origin) -> AgentConnection | None:
        while origin.idle:
            connection = origin.idle.pop()
            del self._idle[connection]
            if monotonic() - connection.idle_since < _KEEP_ALIVE_SECONDS and connection.has_nothing_unread():
                return connection
            connection.abort()
        return None

    async def _wait_for_turn(self) -> None:
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                with suppress(ValueError):
                    self._waiters.remove(waiter)
            else:
                # It was this caller's turn in the same moment.
                self._end_turn()
            raise

    def _end_turn(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                # The turn is passed on: as many are busy as before.
                waiter.set_result(None)
                return
        self._busy -= 1

    async def _open(self, origin: Origin) -> AgentConnection:
        host, port = origin.host, origin.port
        if len(self._idle) + self._busy > self._limit and self._idle:
            self._drop(next(iter(self._idle)))
        try:
            context = await self._context(origin)
            addresses = [origin.address] if origin.address else await self._addresses(host, port)
            connected = await dial(addresses, port)
            try:
                _, connection = await self._loop.create_connection(
                    lambda: AgentConnection(self._loop),
                    sock=connected,
                    ssl=context,
                    server_hostname=None if context is None else host,
                )
            except BaseException:
                connected.close()
                raise
            connection.check_open()
        except OSError as exc:
            raise ConnectFailed(host, port, exc) from exc
        return connection

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            return await self._resolver.addresses(host, port)
        except OSError as exc:
            raise LookupFailed(host, port, exc) from exc

    async def _context(self, origin: Origin) -> ssl.SSLContext | None:
        if origin.scheme == "http":
            return None
        if origin.tls is not None:
            return self._contexts.context(origin.tls)
        if self._default_context is None:
            # It reads the authorities that this machine trusts, for some 20 ms.
            self._default_context = await asyncio.to_thread(_default_context)
        return self._default_context

    def _drop(self, connection: AgentConnection) -> None:
        origin = self._idle.pop(connection)
        origin.idle.remove(connection)
        connection.abort()

    def _sweep(self) -> None:
        self._sweeper = None
        latest = monotonic() - _KEEP_ALIVE_SECONDS
        while self._idle:
            connection = next(iter(self._idle))
            if connection.idle_since > latest:
                self._sweeper = self._loop.call_later(_SWEEP_SECONDS, self._sweep)
                return
            self._drop(connection)


def _default_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(("http/1.1",))
    return context
