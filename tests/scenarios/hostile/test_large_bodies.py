"""Requests with large bodies that never end: they share a budget, and everybody else goes on working."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from trunkline.api.middleware.body_memory import COPIES
from trunkline.jsontypes import MAX_CONTAINERS
from trunkline.testing import RunningSystem, running_system

# The same entrance in both modes.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

LARGE = 1_000_000
SMALL = b'{"type": "t"}'
# Doors at which bodies arrive: the own interface, and that of published workflows.
EVENTS = "/api/v1/events"
PATHS = [EVENTS, "/a2a/workflows/w"]


class Clients:
    """Requests whose connections stay open until the end."""

    def __init__(self, system: RunningSystem, stack: AsyncExitStack) -> None:
        self._address = system.url.removeprefix("http://").split(":")
        self._stack = stack

    async def post(self, path: str, body: bytes, missing: int = 0) -> asyncio.StreamReader:
        """`missing`: how many bytes of the body never arrive."""
        host, port = self._address
        reader, writer = await asyncio.open_connection(host, int(port))
        # With the writer itself: without a reference to it the connection ends.
        self._stack.callback(_abort, writer)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body) + missing}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        return reader

    async def status(self, path: str, body: bytes) -> int:
        return int((await (await self.post(path, body)).readline()).split()[1])


def _abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


@pytest.mark.parametrize("path", PATHS)
async def test_bodies_that_never_end_are_refused_beyond_the_budget(tmp_path: Path, path: str) -> None:
    async with (
        running_system(tmp_path / "data", max_body_memory=4 * COPIES * LARGE) as system,
        AsyncExitStack() as stack,
        # Without the budget, nothing is ever refused.
        asyncio.timeout(60),
    ):
        clients = Clients(system, stack)
        await system.save({"name": "w", "publish": True, "steps": {"s": {"set": {"a": 1}}}})
        # One address can have half of the budget: of three bodies, one is refused.
        first_lines = [
            asyncio.ensure_future((await clients.post(path, b"x" * (LARGE - 1), missing=1)).readline())
            for _ in range(3)
        ]
        await asyncio.wait(first_lines, return_when=asyncio.FIRST_COMPLETED)
        assert await clients.status(EVENTS, b" " * LARGE) == 429
        assert await clients.status(EVENTS, SMALL) == 202
        assert await clients.status(path, b" " * LARGE) == (429 if path == EVENTS else 200)
        await stack.aclose()
        assert sorted(await asyncio.gather(*first_lines))[:2] == [b"", b""]
        # What they had is free again.
        while (status := await clients.status(EVENTS, b" " * LARGE)) != 400:
            assert status == 429


@pytest.mark.parametrize("path", PATHS)
async def test_a_body_of_too_many_objects_is_refused(tmp_path: Path, path: str) -> None:
    async with running_system(tmp_path / "data") as system, AsyncExitStack() as stack:
        await system.save({"name": "w", "publish": True, "steps": {"s": {"set": {"a": 1}}}})
        body = b"[" + b"[]," * MAX_CONTAINERS + b"0]"
        assert await Clients(system, stack).status(path, body) == 413
