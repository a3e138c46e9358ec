"""The relay: it deletes only what has arrived, and a message that cannot be sent does not block the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

import pytest

from trunkline.brokers.base import Producer, Undelivered
from trunkline.errors import Unavailable
from trunkline.messages import OutgoingMessage
from trunkline.services.messaging.relay import RESERVED, OutboxSender, Relay
from trunkline.stores.base import Store
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio


class FakeProducer:
    """A producer that remembers what it has delivered, refuses some topics, and may be away."""

    def __init__(self) -> None:
        self.delivered: list[OutgoingMessage] = []
        self.refused: set[str] = set()
        self.too_long = b"never"
        self.away = False
        self.rounds = 0
        self.came = asyncio.Event()

    async def send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
        self.rounds += 1
        await asyncio.sleep(0)
        self.came.set()
        if self.away:
            raise Unavailable("The post is on strike.")
        given_up = [
            Undelivered(message, f"no topic {message.topic}")
            for message in messages
            if message.topic in self.refused or message.value == self.too_long
        ]
        refused = {id(message) for message, _ in given_up}
        self.delivered += [message for message in messages if id(message) not in refused]
        return given_up

    async def until(self, number: int) -> None:
        while len(self.delivered) < number:
            self.came.clear()
            await self.came.wait()


def message(number: int, topic: str = "tasks") -> OutgoingMessage:
    return OutgoingMessage(topic, f"run-{number}", str(number).encode(), (("n", b"1"),))


async def put(store: Store, *messages: OutgoingMessage) -> None:
    async with store.transaction() as tx:
        await tx.outbox.put(messages)


async def left(store: Store) -> list[OutgoingMessage]:
    """What is in the outbox; afterwards it is empty."""
    async with store.transaction() as tx:
        return await tx.outbox.take(100_000)


def relay_of(store: Store, producer: Producer) -> Relay:
    return Relay(store, producer, last_seconds=60)


async def send_once(relay: Relay) -> None:
    """What a relay does that is told to stop."""
    stopping = asyncio.Event()
    stopping.set()
    await relay.run(stopping)


@asynccontextmanager
async def running(relay: Relay) -> AsyncGenerator[None]:
    stopping = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(relay.run(stopping))
        try:
            yield
        finally:
            stopping.set()


async def test_what_is_sent_leaves_the_outbox(store: Store) -> None:
    producer = FakeProducer()
    await put(store, message(1), message(2))
    await send_once(relay_of(store, producer))
    assert producer.delivered == [message(1), message(2)]
    assert await left(store) == []


async def test_a_large_outbox_is_emptied_in_one_go(store: Store) -> None:
    producer = FakeProducer()
    for number in range(0, 2_000, 100):
        await put(store, *(message(number + each) for each in range(100)))
    await send_once(relay_of(store, producer))
    assert len(producer.delivered) == 2_000
    assert producer.rounds <= 5


async def test_what_was_not_delivered_stays_and_the_rest_goes(store: Store) -> None:
    producer = FakeProducer()
    producer.refused = {"events"}
    relay = relay_of(store, producer)
    await put(store, message(1), message(2, "events"), message(3))
    await send_once(relay)
    assert producer.delivered == [message(1), message(3)]
    assert relay.failure == "no topic events"
    assert await left(store) == [message(2, "events")]


async def test_a_topic_that_takes_nothing_is_left_alone_for_a_while(store: Store) -> None:
    producer = FakeProducer()
    producer.refused = {"events"}
    relay = relay_of(store, producer)
    await put(store, message(1, "events"))
    await send_once(relay)
    await send_once(relay)
    assert producer.rounds == 1
    await put(store, message(2))
    await send_once(relay)
    assert producer.delivered == [message(2)]
    assert await left(store) == [message(1, "events")]


async def test_what_waits_for_a_missing_topic_does_not_hide_what_comes_after_it(store: Store) -> None:
    producer = FakeProducer()
    producer.refused = {"events"}
    relay = relay_of(store, producer)
    await put(store, *(message(number, "events") for number in range(600)))
    await put(store, *(message(number, "events") for number in range(600)))
    await send_once(relay)
    await put(store, message(7))
    await send_once(relay)
    assert producer.delivered == [message(7)]
    assert len(await left(store)) == 1_200


async def test_one_message_that_is_refused_does_not_hold_up_its_topic(store: Store) -> None:
    producer = FakeProducer()
    producer.too_long = b"1"
    relay = relay_of(store, producer)
    await put(store, message(1), message(2))
    await send_once(relay)
    await put(store, message(3))
    await send_once(relay)
    assert producer.delivered == [message(2), message(3)]
    assert relay.failure is None
    assert await left(store) == [message(1)]


async def test_a_missing_topic_that_was_made_gets_what_waited(store: Store) -> None:
    producer = FakeProducer()
    producer.refused = {"events"}
    relay = relay_of(store, producer)
    await put(store, message(1, "events"))
    async with running(relay):
        await producer.came.wait()
        producer.refused = set()
        await producer.until(1)
    assert relay.failure is None
    assert await left(store) == []


async def test_while_the_broker_is_away_nothing_leaves_and_it_goes_on_by_itself(store: Store) -> None:
    producer = FakeProducer()
    producer.away = True
    relay = relay_of(store, producer)
    await put(store, message(1))
    async with running(relay):
        while relay.failure is None:
            await asyncio.sleep(0)
        assert relay.failure == "The post is on strike."
        producer.away = False
        await producer.until(1)
    assert relay.failure is None
    assert await left(store) == []


async def test_a_stop_does_not_wait_for_a_broker_that_is_away(store: Store) -> None:
    producer = FakeProducer()
    producer.away = True
    relay = relay_of(store, producer)
    await put(store, message(1))
    async with running(relay):
        await producer.came.wait()
    assert await left(store) == [message(1)]


async def test_a_stop_cuts_a_sending_that_takes_too_long_and_forgets_nothing(store: Store) -> None:
    class Stuck:
        async def send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
            del messages
            await asyncio.Event().wait()
            return []

    await put(store, message(1))
    await send_once(Relay(store, Stuck(), last_seconds=0.01))
    assert await left(store) == [message(1)]


async def test_a_wake_up_sends_at_once_and_a_stop_sends_what_is_left(store: Store) -> None:
    producer = FakeProducer()
    relay = relay_of(store, producer)
    async with running(relay):
        await put(store, message(1))
        relay.wake()
        await producer.until(1)
        await put(store, message(2))
    assert producer.delivered == [message(1), message(2)]


async def test_a_relay_that_is_cancelled_while_it_sends_forgets_nothing(store: Store) -> None:
    started = asyncio.Event()

    class Stuck:
        async def send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
            del messages
            started.set()
            await asyncio.Event().wait()
            return []

    await put(store, message(1))
    task = asyncio.create_task(Relay(store, Stuck()).run(asyncio.Event()))
    await started.wait()
    task.cancel()
    await asyncio.wait([task])
    assert await left(store) == [message(1)]


async def test_a_producer_with_a_bug_is_tried_again(store: Store) -> None:
    class Buggy(FakeProducer):
        async def send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
            if self.rounds == 0:
                self.rounds = 1
                raise ZeroDivisionError("on purpose")
            return await super().send(messages)

    producer = Buggy()
    await put(store, message(1))
    async with running(relay_of(store, producer)):
        await producer.until(1)
    assert await left(store) == []


async def turn(store: Store, part: OutboxSender, *messages: OutgoingMessage) -> None:
    """One turn of a commit loop that publishes these."""
    async with store.transaction() as tx:
        await tx.outbox.put(messages)
        await part.work(tx)
    part.committed()


async def rows(store: Store) -> int:
    return (await store.backlog.count()).outbox


async def test_what_a_turn_has_put_is_sent_from_memory_and_deleted_with_the_next_turn(store: Store) -> None:
    producer = FakeProducer()
    relay = relay_of(store, producer)
    part = OutboxSender(relay)
    async with running(relay):
        await turn(store, part, message(1), message(2))
        await producer.until(2)
        # It stays until then.
        assert await rows(store) == 1
        await turn(store, part, message(3))
        await producer.until(3)
    assert producer.delivered == [message(1), message(2), message(3)]
    assert await rows(store) == 0
    assert part.next_wake() is None


async def test_what_is_being_sent_from_memory_is_not_taken_by_another_relay(store: Store) -> None:
    part = OutboxSender(relay_of(store, FakeProducer()))
    await turn(store, part, message(1))
    other = FakeProducer()
    await send_once(relay_of(store, other))
    assert other.rounds == 0
    assert await rows(store) == 1


async def test_what_a_process_that_died_had_reserved_is_sent_by_another_relay(
    store: Store, clock: FakeClock
) -> None:
    await turn(store, OutboxSender(relay_of(store, FakeProducer())), message(1))
    clock.advance(RESERVED)
    other = FakeProducer()
    await send_once(relay_of(store, other))
    assert other.delivered == [message(1)]
    assert await rows(store) == 0


async def test_what_could_not_be_sent_from_memory_stays_in_the_outbox_and_the_rest_goes(store: Store) -> None:
    producer = FakeProducer()
    producer.refused = {"events"}
    relay = relay_of(store, producer)
    part = OutboxSender(relay)
    await turn(store, part, message(1), message(2, "events"))
    await send_once(relay)
    assert producer.delivered == [message(1)]
    assert relay.failure == "no topic events"
    assert await left(store) == [message(2, "events")]


async def test_while_the_broker_is_away_nothing_of_a_turn_is_lost(store: Store, clock: FakeClock) -> None:
    producer = FakeProducer()
    producer.away = True
    relay = relay_of(store, producer)
    await turn(store, OutboxSender(relay), message(1))
    await send_once(relay)
    assert relay.failure == "The post is on strike."
    clock.advance(RESERVED)
    assert await left(store) == [message(1)]


async def test_a_turn_that_is_rolled_back_sends_nothing_and_forgets_nothing(store: Store) -> None:
    producer = FakeProducer()
    relay = relay_of(store, producer)
    part = OutboxSender(relay)
    async with running(relay):
        await turn(store, part, message(1))
        await producer.until(1)
        with suppress(ZeroDivisionError):
            async with store.transaction() as tx:
                await tx.outbox.put([message(2)])
                await part.work(tx)
                raise ZeroDivisionError
        part.rolled_back()
    assert producer.delivered == [message(1)]
    # What had arrived is deleted all the same, a moment later.
    assert await rows(store) == 0


async def test_a_part_of_two_loops_sends_nothing_that_is_not_committed(store: Store) -> None:
    relay = relay_of(store, FakeProducer())
    part = OutboxSender(relay)
    async with store.transaction() as tx:
        await tx.outbox.put([message(1)])
        await part.work(tx)
        with pytest.raises(RuntimeError, match="one commit loop"):
            await part.work(tx)
        assert relay.take_offered() == []


async def test_a_turn_without_messages_wakes_no_relay(store: Store) -> None:
    producer = FakeProducer()
    relay = relay_of(store, producer)
    await turn(store, OutboxSender(relay))
    assert relay.take_offered() == []
