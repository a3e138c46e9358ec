"""
Dead letters: bytes as text where they are text, the value cut, and what may be a secret redacted.

A replay sends the record as it came, whatever is shown of it here.
"""

from __future__ import annotations

from base64 import b64encode
from codecs import utf_8_decode
from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from trunkline.api.resources.common import NextCursor, Timestamp
from trunkline.clock import rfc3339
from trunkline.stores.base import DeadLetter
from trunkline.telemetry.redaction import REDACTED, is_secret_name

# As much as is kept of a body on the wire.
SHOWN_BYTES = 64 * 1024

Encoding = Literal["utf-8", "base64"]


class DeadLetterSummary(TypedDict):
    id: str
    topic: Annotated[str, Meta(description="Where the record was, and where a replay sends it.")]
    partition: int
    offset: int
    key: Annotated[str | None, Meta(description="The record's key; null: it has none.")]
    key_encoding: Annotated[Encoding, Meta(description="`base64` where the key is no text.")]
    size: Annotated[int, Meta(description="The value's length in bytes.")]
    reason: Annotated[str, Meta(description="Why it is here, and what to do about it.")]
    at: Annotated[Timestamp, Meta(description="When it was put here.")]


class LetterHeader(TypedDict):
    name: str
    value: str
    encoding: Encoding


class DeadLetterResource(DeadLetterSummary):
    value: Annotated[str | None, Meta(description="The record's value; null: it has none.")]
    encoding: Annotated[Encoding, Meta(description="`base64` where the value is no text.")]
    cut: Annotated[bool, Meta(description="Whether `value` is only the beginning of it.")]
    headers: Annotated[list[LetterHeader], Meta(description="Those that may hold secrets are redacted.")]


class DeadLetterPage(TypedDict):
    items: list[DeadLetterSummary]
    next_cursor: NextCursor


def dead_letter_summary(letter: DeadLetter) -> DeadLetterSummary:
    key, encoding = _decoded(letter.key)
    return {
        "id": letter.id,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "key": key,
        "key_encoding": encoding,
        "size": len(letter.value or b""),
        "reason": letter.reason,
        "at": rfc3339(letter.at),
    }


def dead_letter_resource(letter: DeadLetter) -> DeadLetterResource:
    value, encoding = _decoded(letter.value)
    return {
        **dead_letter_summary(letter),
        "value": value,
        "encoding": encoding,
        "cut": len(letter.value or b"") > SHOWN_BYTES,
        "headers": [_header(name, content) for name, content in letter.headers],
    }


def _header(name: str, content: bytes) -> LetterHeader:
    if is_secret_name(name):
        return {"name": name, "value": REDACTED, "encoding": "utf-8"}
    value, encoding = _decoded(content)
    return {"name": name, "value": value or "", "encoding": encoding}


def _decoded(content: bytes | None) -> tuple[str | None, Encoding]:
    if content is None:
        return None, "utf-8"
    try:
        # Where it is cut, the last character may be cut through without being wrong.
        return utf_8_decode(content[:SHOWN_BYTES], "strict", len(content) <= SHOWN_BYTES)[0], "utf-8"
    except UnicodeDecodeError:
        return b64encode(content[:SHOWN_BYTES]).decode(), "base64"
