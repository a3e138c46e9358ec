"""Dead letters: a replay sends exactly what arrived, and removes the dead letter in the same transaction."""

from __future__ import annotations

import msgspec
import pytest

from trunkline.clock import Instant
from trunkline.errors import Conflict, NotFound
from trunkline.id_generation import new_id
from trunkline.messages import OutgoingMessage
from trunkline.services.messaging.dead_letters import DeadLetters
from trunkline.stores.base import DeadLetter, Store

pytestmark = pytest.mark.anyio


async def put(store: Store, **fields: object) -> DeadLetter:
    letter = DeadLetter(
        id=new_id(),
        topic="trunkline.tasks",
        partition=3,
        offset=17,
        key=b"run-1",
        value=b"no task",
        headers=(("trunkline-type", b"agent-task"), ("odd", b"\xff\x00")),
        reason="unreadable",
        at=Instant(1),
    )
    letter = msgspec.structs.replace(letter, **fields)
    async with store.transaction() as tx:
        await tx.dead_letters.put([letter])
    return letter


async def outbox(store: Store) -> list[OutgoingMessage]:
    async with store.transaction() as tx:
        return await tx.outbox.take(10)


@pytest.mark.parametrize("key", [b"run-1", "schlüssel".encode(), b"\xff\xfe", b"\x00", None])
async def test_a_replay_sends_the_record_as_it_came(store: Store, key: bytes | None) -> None:
    letter = await put(store, key=key)
    await DeadLetters(store, can_replay=True).replay(letter.id)
    (sent,) = await outbox(store)
    assert (sent.topic, sent.value, sent.headers) == (letter.topic, letter.value, letter.headers)
    assert sent.record_key == key
    assert await store.dead_letters.page(limit=10) == []


async def test_a_letter_is_sent_on_once(store: Store) -> None:
    letters = DeadLetters(store, can_replay=True)
    letter = await put(store)
    await letters.replay(letter.id)
    with pytest.raises(NotFound):
        await letters.replay(letter.id)
    assert len(await outbox(store)) == 1


async def test_where_nothing_travels_nothing_is_sent_on(store: Store) -> None:
    letter = await put(store)
    with pytest.raises(Conflict, match="no message broker"):
        await DeadLetters(store, can_replay=False).replay(letter.id)
    assert await store.dead_letters.get(letter.id) == letter
    assert await outbox(store) == []


async def test_a_record_without_a_value_stays_a_letter(store: Store) -> None:
    letter = await put(store, value=None)
    letters = DeadLetters(store, can_replay=True)
    with pytest.raises(Conflict, match="no value"):
        await letters.replay(letter.id)
    assert await letters.get(letter.id) == letter


async def test_what_is_deleted_is_gone(store: Store) -> None:
    letters = DeadLetters(store, can_replay=True)
    letter = await put(store)
    await letters.delete(letter.id)
    with pytest.raises(NotFound):
        await letters.get(letter.id)
    with pytest.raises(NotFound):
        await letters.delete(letter.id)
    assert await outbox(store) == []


async def test_the_newest_letters_come_first(store: Store) -> None:
    ids = [(await put(store, offset=number)).id for number in range(3)]
    letters = DeadLetters(store, can_replay=True)
    assert [letter.id for letter in await letters.list(limit=2)] == [*sorted(ids, reverse=True)][:2]
    assert [letter.id for letter in await letters.list(limit=2, before=sorted(ids)[1])] == [min(ids)]
