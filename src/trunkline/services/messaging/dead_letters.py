"""
Dead letters: records that could not be read or applied, kept raw until a person has decided what becomes of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import structlog

from trunkline.clock import Instant
from trunkline.errors import Conflict, NotFound
from trunkline.id_generation import new_id
from trunkline.jsontypes import JsonObject
from trunkline.messages import BrokerRecord, OutgoingMessage
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.subscriptions.reporter import Change, ChangeReporter
from trunkline.stores.base import DeadLetter, Store, Transaction
from trunkline.stores.port.operations import NewAuditEntry
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

_MAX_REASON_CHARACTERS = 500

# Applies the record of a dead letter in the transaction that deletes it; raises `Conflict` if it still cannot.
ReadAgain: TypeAlias = Callable[[Transaction, DeadLetter], Awaitable[None]]


async def put_dead_letters(
    tx: Transaction, letters: Sequence[DeadLetter], reporter: ChangeReporter | None
) -> None:
    """`reporter`: for the subscriptions to dead letters."""
    await tx.dead_letters.put(letters)
    if reporter is not None:
        await reporter.report(tx, [_change(letter) for letter in letters])


def _change(letter: DeadLetter) -> Change:
    data: JsonObject = {"dead_letter": letter.id, "topic": letter.topic, "reason": letter.reason}
    return Change("dead_letter", letter.topic, data)


class DeadLetters:
    def __init__(
        self, store: Store, *, can_replay: bool, read_again: Mapping[str, ReadAgain] = MappingProxyType({})
    ) -> None:
        """`can_replay`: there are topics to send them to. `read_again`: for topics of other systems."""
        self._store = store
        self._can_replay = can_replay
        self._read_again = read_again

    async def list(self, *, limit: int, before: str | None = None) -> list[DeadLetter]:
        """Newest first."""
        return await self._store.dead_letters.page(limit=limit, before=before)

    async def get(self, letter_id: str) -> DeadLetter:
        return _found(await self._store.dead_letters.get(letter_id), letter_id)

    async def replay(self, letter_id: str) -> DeadLetter:
        """
        Sends the record to its topic again, as it came; if it is still no good, it comes back as another letter.

        A record of a topic of other systems is read again here. Its topic has it already.
        """
        read_again = self._read_again.get((await self.get(letter_id)).topic)
        if read_again is None and not self._can_replay:
            raise Conflict(
                "The dead letter cannot be replayed, because this system has no message broker.",
                fix="Replay it on a system with TRUNKLINE_BROKER=kafka://…, or delete it.",
            )
        async with self._store.transaction() as tx:
            letter = _found(await tx.dead_letters.take(letter_id), letter_id)
            if read_again is None:
                await tx.outbox.put([replayed_record(letter)])
            else:
                await read_again(tx, letter)
            await tx.audit.put([_audited("replay", letter)])
        log.info(log_events.DEAD_LETTER_REPLAYED, letter_id=letter.id, topic=letter.topic)
        return letter

    async def delete(self, letter_id: str) -> None:
        async with self._store.transaction() as tx:
            letter = _found(await tx.dead_letters.take(letter_id), letter_id)
            await tx.audit.put([_audited("discard", letter)])
        log.info(
            log_events.DEAD_LETTER_DISCARDED,
            letter_id=letter.id,
            topic=letter.topic,
            partition=letter.partition,
            offset=letter.offset,
            reason=letter.reason,
        )


def dead_letter(record: BrokerRecord, reason: str, at: Instant) -> DeadLetter:
    """A record that has become a dead letter."""
    return DeadLetter(
        id=new_id(),
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=record.headers,
        reason=reason[:_MAX_REASON_CHARACTERS],
        at=at,
    )


def replayed_record(letter: DeadLetter) -> OutgoingMessage:
    """The record as it came: with its key, whatever its bytes are, and its headers."""
    if letter.value is None:
        raise no_value()
    key = letter.key or b""
    try:
        return OutgoingMessage(letter.topic, key.decode(), letter.value, letter.headers)
    except UnicodeDecodeError:
        return OutgoingMessage(letter.topic, "", letter.value, letter.headers, key)


def record_of(letter: DeadLetter) -> BrokerRecord:
    return BrokerRecord(
        topic=letter.topic,
        partition=letter.partition,
        offset=letter.offset,
        key=letter.key,
        value=letter.value,
        headers=letter.headers,
    )


def no_value() -> Conflict:
    return Conflict("The dead letter has no value, so there is nothing to replay.", fix="Delete it.")


def _audited(action: str, letter: DeadLetter) -> NewAuditEntry:
    return audit_entry(
        "dead_letter", action, letter.id, topic=letter.topic, partition=letter.partition, offset=letter.offset
    )


def _found(letter: DeadLetter | None, letter_id: str) -> DeadLetter:
    if letter is None:
        raise NotFound(
            f"There is no dead letter {letter_id}.", fix="List the dead letters: trunkline dead-letters list."
        )
    return letter
