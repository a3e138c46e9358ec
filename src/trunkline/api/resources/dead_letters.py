"""
Dead letters: text if the bytes are UTF-8, otherwise base64. The value is truncated, and secrets are redacted.

A replay sends the original record, not what is shown here.
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

# The same limit as for a body in the wire record.
SHOWN_BYTES = 64 * 1024

Encoding = Literal["utf-8", "base64"]


class DeadLetterSummary(TypedDict):
    id: str
    topic: Annotated[str, Meta(description="Topic that the record came from, and that a replay sends it to.")]
    partition: int
    offset: int
    key: Annotated[str | None, Meta(description="Key of the record. Null if it has none.")]
    key_encoding: Annotated[Encoding, Meta(description="`base64` if the key is not valid UTF-8.")]
    size: Annotated[int, Meta(description="Size of the value in bytes.")]
    reason: Annotated[str, Meta(description="Why the record could not be processed, and how to fix it.")]
    at: Annotated[Timestamp, Meta(description="When the record became a dead letter.")]


class LetterHeader(TypedDict):
    name: str
    value: str
    encoding: Encoding


class DeadLetterResource(DeadLetterSummary):
    value: Annotated[str | None, Meta(description="Value of the record. Null if it has none.")]
    encoding: Annotated[Encoding, Meta(description="`base64` if the value is not valid UTF-8.")]
    cut: Annotated[bool, Meta(description="Whether `value` is truncated.")]
    headers: Annotated[
        list[LetterHeader],
        Meta(description="Headers of the record. Those that may contain secrets are redacted."),
    ]


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
        # Truncation may split the last character, which does not make the text invalid.
        return utf_8_decode(content[:SHOWN_BYTES], "strict", len(content) <= SHOWN_BYTES)[0], "utf-8"
    except UnicodeDecodeError:
        return b64encode(content[:SHOWN_BYTES]).decode(), "base64"
