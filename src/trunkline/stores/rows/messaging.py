"""
How messages and headers are packed into one column, and a wait into three.

The same on every backend, since a store can be moved to another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from trunkline.clock import Instant
from trunkline.machine.state import StepState
from trunkline.messages import OutgoingMessage
from trunkline.stores.base import DeadLetter

Headers = tuple[tuple[str, bytes], ...]

_encoder = msgspec.msgpack.Encoder()
_messages = msgspec.msgpack.Decoder(list[OutgoingMessage])
_headers = msgspec.msgpack.Decoder(Headers)


def pack_messages(messages: Sequence[OutgoingMessage]) -> bytes:
    return _encoder.encode(messages)


def unpack_messages(packed: bytes) -> list[OutgoingMessage]:
    return _messages.decode(packed)


def pack_headers(headers: Headers) -> bytes:
    return _encoder.encode(headers)


def unpack_headers(packed: bytes) -> Headers:
    return _headers.decode(packed)


def wait_of(step: StepState, workflow: str) -> tuple[str | None, Instant | None, str | None]:
    """By which the store finds a step that waits for a person: the kind, since when, and the workflow's name."""
    waiting = step.waiting_for
    if waiting is None or not waiting.is_for_a_person:
        return None, None, None
    return waiting.kind, waiting.since or step.started_at, workflow


def origin_of(letter: DeadLetter) -> str:
    """The same record, the same text. With the value: a topic that is made anew counts its offsets from 0 again."""
    digest = hashlib.sha256(letter.value or b"").hexdigest()
    return f"{letter.topic}/{letter.partition}/{letter.offset}/{digest}"
