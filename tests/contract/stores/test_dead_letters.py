"""What every store promises about records that could not be read or applied."""

from __future__ import annotations

import msgspec
import pytest
from tests.contract.samples import NOW

from trunkline.stores.base import DeadLetter, Store

pytestmark = pytest.mark.anyio


def letter(
    number: int, *, offset: int | None = None, value: bytes | None = b"\x00 not JSON \xff"
) -> DeadLetter:
    return DeadLetter(
        id=f"018f0000-0000-7000-8000-{number:012}",
        topic="trunkline.results",
        partition=3,
        offset=number if offset is None else offset,
        key=b"\xfe",
        value=value,
        headers=(("kind", b"\x00"), ("kind", b"result")),
        reason="It is not JSON.",
        at=NOW,
    )


async def put(store: Store, *letters: DeadLetter) -> None:
    async with store.transaction() as tx:
        await tx.dead_letters.put(letters)


async def test_a_letter_comes_back_as_it_was_put(store: Store) -> None:
    bare = msgspec.structs.replace(letter(2, value=None), key=None, headers=())
    await put(store, letter(1), bare)
    assert await store.dead_letters.get(letter(1).id) == letter(1)
    assert await store.dead_letters.get(bare.id) == bare
    assert await store.dead_letters.get(letter(3).id) is None
    assert (await store.backlog.count()).dead_letters == 2


async def test_counting_stops_at_the_limit(store: Store) -> None:
    async with store.transaction() as tx:
        assert await tx.dead_letters.count(10) == 0
    await put(store, letter(1), letter(2), letter(3))
    async with store.transaction() as tx:
        assert (await tx.dead_letters.count(2), await tx.dead_letters.count(10)) == (2, 3)


async def test_letters_are_listed_newest_first(store: Store) -> None:
    await put(store, letter(2), letter(1), letter(3))
    assert await store.dead_letters.page(limit=2) == [letter(3), letter(2)]
    assert await store.dead_letters.page(limit=10, before=letter(2).id) == [letter(1)]


async def test_a_record_that_is_delivered_again_stays_the_letter_that_it_is(store: Store) -> None:
    await put(store, letter(1, offset=7))
    await put(store, letter(2, offset=7), letter(3, offset=8), letter(4, offset=8))
    assert await store.dead_letters.page(limit=10) == [letter(3, offset=8), letter(1, offset=7)]


async def test_another_record_at_the_same_place_is_another_letter(store: Store) -> None:
    await put(store, letter(1, offset=7), letter(2, offset=7, value=b"of a topic that was created again"))
    assert len(await store.dead_letters.page(limit=10)) == 2


async def test_a_letter_is_taken_once(store: Store) -> None:
    await put(store, letter(1), letter(2))
    async with store.transaction() as tx:
        assert await tx.dead_letters.take(letter(1).id) == letter(1)
        assert await tx.dead_letters.take(letter(1).id) is None
    assert await store.dead_letters.page(limit=10) == [letter(2)]


async def test_a_letter_that_is_taken_in_a_transaction_that_fails_is_still_there(store: Store) -> None:
    await put(store, letter(1))

    async def fail() -> None:
        async with store.transaction() as tx:
            await tx.dead_letters.take(letter(1).id)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    assert await store.dead_letters.get(letter(1).id) == letter(1)
