"""A receiver of push notifications that can be down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web
from tests.scenarios.publishing.a2a_caller import state_of

from trunkline.jsontypes import JsonObject


class Notification:
    def __init__(self, path: str, headers: dict[str, str], raw: bytes, body: JsonObject) -> None:
        self.path = path
        # Names in lower case.
        self.headers = headers
        self.raw = raw
        self.body = body

    @property
    def state(self) -> str | None:
        """What it says of the state of the task."""
        for about in (self.body, self.body.get("task"), self.body.get("statusUpdate")):
            if isinstance(about, dict) and "status" in about:
                return state_of(about)
        return None


class Receiver:
    def __init__(self) -> None:
        self.url = ""
        # What it answers.
        self.status = 200
        self.accepted: list[Notification] = []
        self.refused = 0
        self._changed = asyncio.Condition()

    async def take(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        notification = Notification(request.path, headers, await request.read(), await request.json())
        async with self._changed:
            if self.status == 200:
                self.accepted.append(notification)
            else:
                self.refused += 1
            self._changed.notify_all()
        return web.Response(status=self.status)

    async def has_refused(self, number: int) -> None:
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(lambda: self.refused >= number)

    async def states(self, path: str = "/", *, until: str = "completed") -> list[str]:
        """What it was told of the state of the task, up to this state."""

        def has_ended() -> bool:
            return any(each.state == until for each in self.at(path))

        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(has_ended)
        return [each.state for each in self.at(path) if each.state is not None]

    def at(self, path: str) -> list[Notification]:
        return [each for each in self.accepted if each.path == path]


@asynccontextmanager
async def receiving() -> AsyncGenerator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/{path:.*}", receiver.take)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield receiver
    finally:
        await runner.cleanup()
