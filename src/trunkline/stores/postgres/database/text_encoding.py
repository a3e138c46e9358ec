"""
Texts that PostgreSQL refuses, written so that it takes them and they come back as they were.

Agents choose ids and names that end up in text columns. A NUL or half of a surrogate pair in one of them would fail
the statement, and with it everything else in the batch.
"""

from __future__ import annotations

import re

from trunkline.jsontypes import decode, encode
from trunkline.stores.rows import Row

# "Substitute": hardly ever in a text, and escaped itself.
_MARK = "\x1a"
_REFUSED = re.compile("[\x00\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")
LOWEST_UUID = "00000000-0000-0000-0000-000000000000"
HIGHEST_UUID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def escaped(text: str) -> str:
    # Nearly every text is plain ASCII, and this is the quickest way to see it.
    if text.isascii() and "\x00" not in text and _MARK not in text:
        return text
    return _REFUSED.sub(lambda match: f"{_MARK}{ord(match[0]):04x}", text)


def restored(text: str) -> str:
    """What `escaped` was given."""
    if _MARK not in text:
        return text
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def restored_row(row: Row) -> Row:
    """With all its texts as they were given."""
    return [
        restored(value)
        if value.__class__ is str and _MARK in value
        else value  # quick for the many that have no mark
        for value in row
    ]


def json_accepted(text: str) -> str:
    """JSON text for a column of jsonb: where that would refuse it, one JSON string that holds all of it."""
    if "\\u0000" not in text:
        return text
    return encode(text.replace("\\u0000", escaped("\x00"))).decode()


def json_restored(text: str) -> str:
    """JSON text of an object, as it was given to `json_accepted`."""
    if not text.startswith('"'):
        return text
    return str(decode(text)).replace(escaped("\x00"), "\\u0000")


def as_uuid(text: str | None) -> str | None:
    """The text if it is an id in the one way that we write them. Nothing has any other."""
    return text if text is not None and _UUID.fullmatch(text) else None
