"""
The memory that large request bodies may take together, in each process, and their order.

A body is in memory until its request has a response. Without a budget, one client that sends large bodies and never
finishes them takes gigabytes. What a body may have by itself is not decided here.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trunkline.api.correlation_ids import find_header
from trunkline.api.middleware.auth import key_id_of
from trunkline.api.services import RequestLimits
from trunkline.errors import Overloaded, TooManyRequests
from trunkline.serving.connection_limits import address_group

# Smaller bodies are not counted: as many as there can be connections take little.
FREE_BYTES = 64 * 1024
# A body takes about so many times its size: its text, what it says, and how that is stored.
COPIES = 4


class BodyMemory:
    """Wraps an ASGI application. Reading a body raises `Overloaded` there if there is no memory for it."""

    def __init__(self, app: ASGIApp, limits: RequestLimits) -> None:
        self._app = app
        self._limit = limits.max_body_memory
        self._taken = 0
        self._by_client: Counter[str] = Counter()
        self._turn = asyncio.Lock()

    @property
    def taken_bytes(self) -> int:
        return self._taken

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_small(scope):
            await self._app(scope, receive, send)
            return
        share = _Share(self, _client_of(scope))
        size = _declared_bytes(scope) or 0
        arrived = 0

        async def receive_counted() -> Message:
            nonlocal arrived
            # What was announced is counted before it arrives, so that a refusal comes early.
            share.grow(max(size, arrived))
            message = await receive()
            arrived += len(message.get("body", b""))
            share.grow(max(size, arrived))
            if arrived > FREE_BYTES and not message.get("more_body", False):
                await self._wait_for_turn()
            return message

        async def send_and_release(message: Message) -> None:
            if message["type"] == "http.response.start":
                # What still arrives is dropped by the server, piece by piece.
                share.close()
            await send(message)

        try:
            await self._app(scope, receive_counted, send_and_release)
        finally:
            share.close()

    async def _wait_for_turn(self) -> None:
        """
        Large bodies that have arrived at the same time are decoded one after the other, and small requests in between.

        Decoding one of them can take a tenth of a second, and the event loop would decode all of them at once.
        """
        async with self._turn:
            await asyncio.sleep(0)

    def take(self, client: str, size: int) -> None:
        """Raises `Overloaded`, or `TooManyRequests` if it is only this client that has too much."""
        if self._by_client[client] + size > self._limit // 2:
            raise TooManyRequests(
                "The large request bodies of this client would take more than half of the memory for all "
                f"clients ({self._limit} bytes, max_body_memory)."
            )
        if self._taken + size > self._limit:
            raise Overloaded(
                f"The memory for large request bodies is in use ({self._limit} bytes, max_body_memory)."
            )
        self._taken += size
        self._by_client[client] += size

    def give_back(self, client: str, size: int) -> None:
        self._taken -= size
        self._by_client[client] -= size
        if not self._by_client[client]:
            del self._by_client[client]


class _Share:
    """What one request has of the memory."""

    def __init__(self, memory: BodyMemory, client: str) -> None:
        self._memory = memory
        self._client = client
        self._held = 0
        self._is_closed = False

    def grow(self, body_bytes: int) -> None:
        """To what a body of this size takes."""
        more = COPIES * body_bytes - self._held
        if self._is_closed or body_bytes <= FREE_BYTES or more <= 0:
            return
        self._memory.take(self._client, more)
        self._held += more

    def close(self) -> None:
        self._is_closed = True
        held, self._held = self._held, 0
        if held:
            self._memory.give_back(self._client, held)


def _is_small(scope: Scope) -> bool:
    """Most requests are: they have no body, or say that it is small."""
    declared = _declared_bytes(scope)
    if declared is None:
        return find_header(scope["headers"], b"transfer-encoding") is None
    return declared <= FREE_BYTES


def _declared_bytes(scope: Scope) -> int | None:
    declared = find_header(scope["headers"], b"content-length")
    return None if declared is None else int(declared)


def _client_of(scope: Scope) -> str:
    """Its API key, or else its address."""
    key_id, client = key_id_of(scope), scope.get("client")
    return key_id or ("" if client is None else address_group(client[0]))
