"""Large bodies share a budget of memory: each counts from its first byte until its request has a response."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from trunkline.api.bodies import read_body
from trunkline.api.middleware.body_memory import COPIES, FREE_BYTES, BodyMemory
from trunkline.api.services import RequestLimits
from trunkline.errors import Overloaded, TooManyRequests

pytestmark = pytest.mark.anyio

LARGE = 100_000
LIMITS = RequestLimits(max_body_memory=4 * COPIES * LARGE)


class HeldUploads:
    """Requests with bodies that are held until `may_end` is set."""

    def __init__(self, limits: RequestLimits = LIMITS) -> None:
        self.may_end = asyncio.Event()
        self.sent: list[Message] = []
        self.memory = BodyMemory(self._app, limits)

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(Request(scope, receive), 10 * LARGE)
        await self.may_end.wait()
        await Response()(scope, receive, send)

    async def send(self, address: str, *chunks: int, length: int | None = None, stays: bool = False) -> None:
        """`stays`: the client neither sends the rest of its body nor leaves."""
        messages: list[Message] = [
            {"type": "http.request", "body": bytes(size), "more_body": number < len(chunks)}
            for number, size in enumerate(chunks, 1)
        ]

        async def receive() -> Message:
            if not messages and stays:
                await asyncio.Event().wait()
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def keep(message: Message) -> None:
            self.sent.append(message)

        named = b"transfer-encoding", b"chunked"
        headers = [named if length is None else (b"content-length", b"%d" % length)]
        scope = {
            "type": "http", "method": "POST", "path": "/", "headers": headers, "client": (address, 1),
        }  # fmt: skip
        await self.memory(scope, receive, keep)


async def test_a_body_counts_until_its_request_has_a_response() -> None:
    uploads = HeldUploads()
    async with asyncio.TaskGroup() as group:
        group.create_task(uploads.send("1.1.1.1", LARGE, length=LARGE))
        while not uploads.memory.taken_bytes:
            await asyncio.sleep(0)
        assert uploads.memory.taken_bytes == COPIES * LARGE
        uploads.may_end.set()
    assert uploads.memory.taken_bytes == 0
    assert uploads.sent[0]["status"] == 200


async def test_one_client_has_half_and_all_clients_together_have_no_more_than_there_is() -> None:
    uploads = HeldUploads()
    async with asyncio.TaskGroup() as group:
        for address in ("1.1.1.1", "1.1.1.1", "2.2.2.2", "3.3.3.3"):
            group.create_task(uploads.send(address, LARGE, length=LARGE))
        while uploads.memory.taken_bytes < 4 * COPIES * LARGE:
            await asyncio.sleep(0)
        with pytest.raises(TooManyRequests, match="max_body_memory"):
            await uploads.send("1.1.1.1", length=LARGE)
        with pytest.raises(Overloaded, match="max_body_memory"):
            await uploads.send("4.4.4.4", length=LARGE)
        # Small ones are never refused.
        small = group.create_task(uploads.send("1.1.1.1", FREE_BYTES, length=FREE_BYTES))
        uploads.may_end.set()
    assert small.done()
    assert uploads.memory.taken_bytes == 0


async def test_an_announced_body_is_refused_before_any_of_it_has_arrived() -> None:
    uploads = HeldUploads(RequestLimits(max_body_memory=COPIES * LARGE))
    with pytest.raises(TooManyRequests):
        await uploads.send("1.1.1.1", length=LARGE)
    assert uploads.memory.taken_bytes == 0


async def test_a_body_of_unknown_length_is_refused_when_it_has_become_too_large() -> None:
    uploads = HeldUploads(RequestLimits(max_body_memory=2 * COPIES * LARGE))
    uploads.may_end.set()
    await uploads.send("1.1.1.1", LARGE // 2, LARGE // 2)
    with pytest.raises(TooManyRequests):
        await uploads.send("1.1.1.1", LARGE // 2, LARGE // 2, 1)
    assert uploads.memory.taken_bytes == 0


async def test_what_a_client_has_taken_is_given_back_when_it_leaves() -> None:
    uploads = HeldUploads()
    upload = asyncio.create_task(uploads.send("1.1.1.1", length=LARGE, stays=True))
    while not uploads.memory.taken_bytes:
        await asyncio.sleep(0)
    upload.cancel()
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert uploads.memory.taken_bytes == 0


async def test_large_bodies_that_have_arrived_together_are_passed_on_one_by_one() -> None:
    passed_on: list[int] = []
    iterations = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(Request(scope, receive), LARGE)
        passed_on.append(iterations)
        await Response()(scope, receive, send)

    async def count_iterations() -> None:
        nonlocal iterations
        while len(passed_on) < 5:
            iterations += 1
            await asyncio.sleep(0)

    uploads = HeldUploads(RequestLimits())
    uploads.memory = BodyMemory(app, RequestLimits())
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(uploads.send("1.1.1.1", LARGE, length=LARGE))
        group.create_task(count_iterations())
    # The event loop has looked at everything else between two of them.
    assert len(set(passed_on)) == 5
