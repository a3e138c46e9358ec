"""An answer's head leaves with its body, and nothing is lost, late or in another order."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from trunkline.serving.write_coalescing import CoalescingTransport

pytestmark = pytest.mark.anyio


class Recorded:
    """Notes what a socket would have got."""

    def __init__(self) -> None:
        self.done: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        assert not self.is_closing(), "nobody is there any more"
        self.done.append(data)

    def write_eof(self) -> None:
        self.done.append("eof")

    def close(self) -> None:
        self.done.append("closed")

    def is_closing(self) -> bool:
        return "closed" in self.done


def gathering() -> tuple[CoalescingTransport, Recorded]:
    recorded = Recorded()
    transport = cast("asyncio.Transport", recorded)
    return CoalescingTransport(transport, asyncio.get_running_loop()), recorded


async def test_a_head_and_its_body_leave_as_one() -> None:
    transport, recorded = gathering()
    transport.write(b"head")
    transport.write(b"body")
    assert recorded.done == [b"headbody"]
    await asyncio.sleep(0)
    assert recorded.done == [b"headbody"]


async def test_what_nothing_follows_leaves_alone_and_soon() -> None:
    transport, recorded = gathering()
    transport.write(b"100 Continue")
    assert recorded.done == []
    await asyncio.sleep(0)
    assert recorded.done == [b"100 Continue"]


async def test_many_writes_keep_their_order() -> None:
    transport, recorded = gathering()
    for number in range(7):
        transport.write(b"%d" % number)
        if number % 3 == 0:
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert b"".join(cast("list[bytes]", recorded.done)) == b"0123456"


@pytest.mark.parametrize("end", ["write_eof", "close"])
async def test_what_is_held_leaves_before_the_end(end: str) -> None:
    transport, recorded = gathering()
    transport.write(b"last words")
    getattr(transport, end)()
    assert recorded.done == [b"last words", "eof" if end == "write_eof" else "closed"]


async def test_what_is_held_for_someone_who_has_gone_is_dropped() -> None:
    transport, recorded = gathering()
    transport.write(b"head")
    recorded.close()
    await asyncio.sleep(0)
    transport.write(b"more")
    transport.write(b"and more")
    assert recorded.done == ["closed"]
