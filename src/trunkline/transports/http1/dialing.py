"""Opens TCP connections, to the first of several addresses that answers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

# Until the next address is tried as well, if one has not answered (RFC 8305).
_HEAD_START_SECONDS = 0.25


async def dial(addresses: Sequence[str], port: int) -> socket.socket:
    """A connected socket that does not block. Raises the `OSError` of the address that failed first."""
    if len(addresses) == 1:
        return await _dial(addresses[0], port)
    waiting = list(reversed(addresses))
    attempts: set[asyncio.Task[socket.socket]] = set()
    errors: list[BaseException] = []
    try:
        while waiting or attempts:
            if waiting:
                attempts.add(asyncio.create_task(_dial(waiting.pop(), port)))
            done, _ = await asyncio.wait(
                attempts,
                timeout=_HEAD_START_SECONDS if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for attempt in done:
                attempts.remove(attempt)
                error = attempt.exception()
                if error is None:
                    return attempt.result()
                errors.append(error)
    finally:
        for attempt in attempts:
            attempt.cancel()
            attempt.add_done_callback(_close)
    raise errors[0]


async def _dial(address: str, port: int) -> socket.socket:
    connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connection, (address, port))
    except BaseException:
        connection.close()
        raise
    return connection


def _close(attempt: asyncio.Task[socket.socket]) -> None:
    """Of an attempt that another one has overtaken."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()
