"""Messages of the outbox, dispatches and dead letters, and how they are packed into columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta

import msgspec

from trunkline.clock import Instant
from trunkline.messages import Dispatch, OutgoingMessage
from trunkline.stores.port.messaging import DeadLetter
from trunkline.stores.rows import Row, Value

_Headers = tuple[tuple[str, bytes], ...]

_encoder = msgspec.msgpack.Encoder()
_messages = msgspec.msgpack.Decoder(list[OutgoingMessage])
_headers = msgspec.msgpack.Decoder(_Headers)


# Where `dispatch_values` has the encoded task.
DISPATCH_PAYLOADS = (3,)


def pack_messages(messages: Sequence[OutgoingMessage]) -> bytes:
    return _encoder.encode(messages)


def unpack_messages(packed: bytes) -> list[OutgoingMessage]:
    return _messages.decode(packed)


def microseconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def dispatch_values(dispatch: Dispatch, pause: int, due: Instant) -> tuple[str, int, str, bytes, int, int]:
    """Task id, attempt, run id, payload, pause in microseconds, resend_at."""
    return (dispatch.key.task_id, dispatch.key.attempt, dispatch.run_id, dispatch.payload, pause, due)


def dead_letter(row: Row) -> DeadLetter:
    letter_id, topic, partition, offset, key, value, headers, reason, at = row
    return DeadLetter(
        id=letter_id,
        topic=topic,
        partition=partition,
        offset=offset,
        key=key,
        value=value,
        headers=_headers.decode(headers),
        reason=reason,
        at=Instant(at),
    )


def dead_letter_values(letter: DeadLetter) -> tuple[Value, ...]:
    """The origin, and the columns that `dead_letter` reads."""
    return (
        _origin(letter),
        letter.id,
        letter.topic,
        letter.partition,
        letter.offset,
        letter.key,
        letter.value,
        _encoder.encode(letter.headers),
        letter.reason,
        letter.at,
    )


def _origin(letter: DeadLetter) -> str:
    """
    The same record, the same text.

    With the value: a topic that is deleted and created again counts its offsets from 0.
    """
    digest = hashlib.sha256(letter.value or b"").hexdigest()
    return f"{letter.topic}/{letter.partition}/{letter.offset}/{digest}"
