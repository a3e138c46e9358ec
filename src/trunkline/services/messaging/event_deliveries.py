"""Takes the records of an event source into the store, as events, with the offsets after the commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from trunkline.brokers.base import RecordSource
from trunkline.errors import Conflict
from trunkline.messages import BrokerRecord, TaskKey
from trunkline.messages.codec import UnreadableMessage
from trunkline.services.events.intake import EventIntake
from trunkline.services.events.sources import TOO_LARGE, EventSource
from trunkline.services.messaging.dead_letters import ReadAgain, no_value, record_of
from trunkline.services.messaging.deliveries import Deliveries, RecordCodec
from trunkline.services.subscriptions.reporter import ChangeReporter
from trunkline.stores.base import DeadLetter, Transaction
from trunkline.stores.port.automation.received_events import NewEvent
from trunkline.telemetry.metrics import Metrics

# A topic of another system may have any number of records that are no events.
MAX_DEAD_LETTERS = 10_000


class MappedRecord(NamedTuple):
    # None: the filter left the record out.
    event: NewEvent | None


def event_deliveries(
    records: RecordSource,
    source: EventSource,
    intake: EventIntake,
    metrics: Metrics,
    reporter: ChangeReporter | None = None,
    max_dead_letters: int = MAX_DEAD_LETTERS,
) -> Deliveries[MappedRecord]:
    def read(record: BrokerRecord) -> MappedRecord:
        return MappedRecord(source.read(record))

    async def take(tx: Transaction, mapped: Sequence[MappedRecord]) -> None:
        events = [each.event for each in mapped if each.event is not None]
        if events:
            await intake.store(tx, events)

    codec = RecordCodec(read, _no_references, _no_payload)
    return Deliveries(records, codec, take, metrics, reporter=reporter, max_dead_letters=max_dead_letters)


def readers_of_dead_letters(sources: Sequence[EventSource], intake: EventIntake) -> dict[str, ReadAgain]:
    """By topic."""
    return {source.topic: _reader(source, intake) for source in sources}


def _reader(source: EventSource, intake: EventIntake) -> ReadAgain:
    async def read_again(tx: Transaction, letter: DeadLetter) -> None:
        if letter.value is None and letter.reason.startswith(TOO_LARGE):
            raise no_value()
        try:
            event = source.read(record_of(letter))
        except UnreadableMessage as exc:
            raise Conflict(
                f"The record still cannot be read. {exc.reason}",
                fix="Correct the source, restart the processes, and replay the dead letter, or delete it.",
            ) from exc
        if event is not None:
            await intake.store(tx, [event])

    return read_again


async def _no_references(tx: Transaction, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
    del tx, keys
    return {}


def _no_payload(payload: bytes) -> MappedRecord:
    raise AssertionError(
        f"The records of event sources refer to nothing, but here is a payload of {len(payload)} bytes."
    )
