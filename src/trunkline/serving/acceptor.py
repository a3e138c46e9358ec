"""
Accepts connections within limits, and hands each one to its protocol.

Not left to the event loop's own server: that one accepts whatever comes until the process has no file descriptor left,
and calls to agents and the store then fail. It also says nothing about connections whose TLS handshake never ends.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from time import monotonic

import structlog

from trunkline.serving.connection import HttpConnection
from trunkline.serving.connection_limits import ConnectionLimits, ConnectionSlots, Slot
from trunkline.serving.tls import ServerTls
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# In one turn of the event loop, so that a flood of connections leaves time for everything else.
_ACCEPTS_PER_TURN = 32
# Connections over the limit that get a response; all others are closed without one.
_MAX_REFUSALS = 32
_HANDSHAKE_SECONDS = 10.0
# After an accept that failed because this machine lacks something.
_PAUSE_SECONDS = 0.2
_LOG_SECONDS = 1.0
# The client has gone, or a firewall has refused it: the next connection may be fine.
_PASSING_ERRORS = frozenset({errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.ECONNRESET})


class _Handshake:
    """A connection that is being established: it gives way like any other without a request."""

    is_idle = True

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def close_idle(self) -> None:
        self._task.cancel()


class Acceptor:
    """Accepts from `listener` between `start` and `stop`."""

    def __init__(
        self,
        listener: socket.socket,
        make_connection: Callable[[], HttpConnection],
        limits: ConnectionLimits,
        tls: ServerTls | None,
    ) -> None:
        self._listener = listener
        self._make_connection = make_connection
        self._slots = ConnectionSlots(limits)
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._establishing: set[asyncio.Task[None]] = set()
        self._refusals: set[HttpConnection] = set()
        self._refused_since_log = 0
        self._next_log = 0.0
        self._pause: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._loop.add_reader(self._listener, self._accept_waiting)

    def stop(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener)
        for task in self._establishing:
            task.cancel()

    def _accept_waiting(self) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                accepted, peer = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as exc:
                if exc.errno not in _PASSING_ERRORS:
                    self._pause_accepting(exc)
                    return
                continue
            accepted.setblocking(False)
            self._admit(accepted, str(peer[0]))

    def _admit(self, accepted: socket.socket, address: str) -> None:
        slot = self._slots.take(address)
        if slot is None:
            self._refuse(accepted, address)
            return
        connection = self._make_connection()
        connection.on_closed = lambda: self._slots.release(slot)
        slot.connection = _Handshake(self._begin(accepted, connection, slot))

    def _refuse(self, accepted: socket.socket, address: str) -> None:
        self._note_refusal(address)
        if self._tls is not None or len(self._refusals) >= _MAX_REFUSALS:
            accepted.close()
            return
        connection = self._make_connection()
        connection.is_over_limit = True
        connection.on_closed = lambda: self._refusals.discard(connection)
        self._refusals.add(connection)
        self._begin(accepted, connection)

    def _begin(
        self, accepted: socket.socket, connection: HttpConnection, slot: Slot | None = None
    ) -> asyncio.Task[None]:
        task = self._loop.create_task(self._establish(accepted, connection, slot))
        self._establishing.add(task)
        task.add_done_callback(self._establishing.discard)
        return task

    async def _establish(
        self, accepted: socket.socket, connection: HttpConnection, slot: Slot | None
    ) -> None:
        tls = None if self._tls is None else self._tls.context()
        is_established = False
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else _HANDSHAKE_SECONDS,
            )
            is_established = True
        except OSError as exc:
            # The client has gone, or its TLS handshake has failed. There is nothing to answer.
            log.debug(log_events.CONNECTION_NOT_ESTABLISHED, error=str(exc))
        finally:
            if not is_established:
                connection.on_closed()
                accepted.close()
        if slot is not None and is_established:
            slot.connection = connection

    def _note_refusal(self, address: str) -> None:
        self._refused_since_log += 1
        now = monotonic()
        if now >= self._next_log:
            self._next_log = now + _LOG_SECONDS
            log.warning(
                log_events.CONNECTIONS_REFUSED,
                count=self._refused_since_log,
                connections=len(self._slots),
                client=address,
            )
            self._refused_since_log = 0

    def _pause_accepting(self, exc: OSError) -> None:
        self._slots.evict_oldest()
        error = os.strerror(exc.errno) if exc.errno else str(exc)
        log.warning(log_events.OUT_OF_RESOURCES, error=error, connections=len(self._slots))
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(_PAUSE_SECONDS, self.start)
