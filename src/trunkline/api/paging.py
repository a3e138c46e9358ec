"""
Lists page by cursor: `{items, next_cursor}`.

A cursor is opaque to callers. It holds the key of the last item given, so a list that grows meanwhile neither
skips nor repeats.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

import msgspec
from fastapi import Query

from trunkline.errors import Finding, Invalid

DEFAULT_LIMIT = 50
MAX_LIMIT = 1000

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="How many items at most.")]
Cursor = Annotated[
    str | None,
    Query(description="`next_cursor` of the page before; leave it out for the first page.", min_length=1),
]

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T]):
    items: Sequence[T]
    next_cursor: str | None


def encode_cursor(key: str | int) -> str:
    return base64.urlsafe_b64encode(str(key).encode()).decode().rstrip("=")


def text_cursor(cursor: str | None) -> str | None:
    """The key inside a cursor."""
    if cursor is None:
        return None
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise _bad_cursor() from error


def number_cursor(cursor: str | None) -> int | None:
    """The number inside a cursor."""
    key = text_cursor(cursor)
    if key is None:
        return None
    # 18 digits fit the 64 bits of every store.
    if not (key.isascii() and key.isdecimal() and len(key) <= 18):
        raise _bad_cursor()
    return int(key)


def _bad_cursor() -> Invalid:
    return Invalid(
        "The cursor is not one of ours.",
        findings=[Finding(path="query.cursor", message="not a cursor of this list")],
        fix="Send `next_cursor` of the page before unchanged, or leave `cursor` out.",
    )


def page(found: Sequence[T], limit: int, key: Callable[[T], str | int]) -> tuple[Sequence[T], str | None]:
    """What was asked for, and the next page's cursor; `found` has one item over `limit` if there is one."""
    if len(found) <= limit:
        return found, None
    kept = found[:limit]
    return kept, encode_cursor(key(kept[-1]))
