"""A receiver of subscriptions' deliveries: a real HTTP server that keeps what it accepts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from aiohttp import web


class ReceivedDelivery(NamedTuple):
    # Names in lower case.
    headers: Mapping[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        return msgspec.json.decode(self.body)


class EventReceiver:
    def __init__(self) -> None:
        self.url = ""
        # How it answers the request with this number, from 1.
        self.answer: Callable[[int], int] = lambda _: 200
        # If set, how it answers a delivery instead.
        self.answer_delivery: Callable[[ReceivedDelivery], int] | None = None
        self.requests = 0
        self.accepted: list[ReceivedDelivery] = []
        self._changed = asyncio.Condition()

    async def take(self, request: web.Request) -> web.Response:
        delivery = ReceivedDelivery(
            {name.lower(): value for name, value in request.headers.items()}, await request.read()
        )
        self.requests += 1
        by_delivery = self.answer_delivery
        status = by_delivery(delivery) if by_delivery is not None else self.answer(self.requests)
        async with self._changed:
            if status < 300:
                self.accepted.append(delivery)
            self._changed.notify_all()
        return web.Response(status=status)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [delivery.event for delivery in self.accepted]

    async def accepts(self, number: int) -> list[dict[str, Any]]:
        """The events, as soon as there are so many."""
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(lambda: len(self.accepted) >= number)
        return self.events

    async def has_seen(self, wanted: Iterable[str]) -> None:
        """Each a subject and a type."""
        missing = set(wanted)
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(
                lambda: missing <= {event["subject"] + event["type"] for event in self.events}
            )

    async def is_asked(self, number: int) -> None:
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(lambda: self.requests >= number)


@asynccontextmanager
async def event_receiver() -> AsyncGenerator[EventReceiver]:
    receiver = EventReceiver()
    app = web.Application()
    app.router.add_post("/{path:.*}", receiver.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/events"
    try:
        yield receiver
    finally:
        await runner.cleanup()
