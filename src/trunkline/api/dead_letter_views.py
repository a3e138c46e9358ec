"""
What the API shows of dead letters: bytes as text where they are text, the value cut, what may be a secret redacted.

A replay sends the record as it came, whatever is shown of it here.
"""

from __future__ import annotations

from base64 import b64encode
from codecs import utf_8_decode
from collections.abc import Sequence
from typing import Literal

import msgspec

from trunkline.api.views import page_json
from trunkline.clock import rfc3339
from trunkline.jsontypes import encode
from trunkline.stores.base import DeadLetter
from trunkline.telemetry.redaction import REDACTED, is_secret_name

# As much as is kept of a body on the wire.
SHOWN_BYTES = 64 * 1024

_Encoding = Literal["utf-8", "base64"]


class _Summary(msgspec.Struct):
    id: str
    topic: str
    partition: int
    offset: int
    key: str | None
    key_encoding: _Encoding
    size: int
    reason: str
    at: str


class _Header(msgspec.Struct):
    name: str
    value: str
    encoding: _Encoding


class _Letter(_Summary):
    value: str | None
    encoding: _Encoding
    cut: bool
    headers: list[_Header]


def dead_letters_json(letters: Sequence[DeadLetter], next_cursor: str | None) -> bytes:
    return page_json([_Summary(*_origin(letter)) for letter in letters], next_cursor)


def dead_letter_json(letter: DeadLetter) -> bytes:
    value, encoding = _shown(letter.value)
    headers = [_header(name, content) for name, content in letter.headers]
    return encode(_Letter(*_origin(letter), value, encoding, len(letter.value or b"") > SHOWN_BYTES, headers))


def _origin(
    letter: DeadLetter,
) -> tuple[str, str, int, int, str | None, _Encoding, int, str, str]:
    key, encoding = _shown(letter.key)
    return (
        letter.id,
        letter.topic,
        letter.partition,
        letter.offset,
        key,
        encoding,
        len(letter.value or b""),
        letter.reason,
        rfc3339(letter.at),
    )


def _header(name: str, content: bytes) -> _Header:
    if is_secret_name(name):
        return _Header(name, REDACTED, "utf-8")
    value, encoding = _shown(content)
    return _Header(name, value or "", encoding)


def _shown(content: bytes | None) -> tuple[str | None, _Encoding]:
    if content is None:
        return None, "utf-8"
    try:
        # Where it is cut, the last character may be cut through without being wrong.
        return utf_8_decode(content[:SHOWN_BYTES], "strict", len(content) <= SHOWN_BYTES)[0], "utf-8"
    except UnicodeDecodeError:
        return b64encode(content[:SHOWN_BYTES]).decode(), "base64"
