"""
Cursor pagination of lists: `{items, next_cursor}`.

A cursor is opaque to callers, and safe in a URL without encoding. It holds the key of the last item of a page, so a
list that grows in the meantime neither skips nor repeats items.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, TypeVar

import msgspec

from trunkline.api.parameters import Parameters

DEFAULT_LIMIT = 50
MAX_LIMIT = 1000

CURSOR = "`next_cursor` of the previous page. Omit it for the first page."

# Of the stored items of a page: a page is shorter than its limit if its items are large. One item can have more.
MAX_PAGE_BYTES = 8 * 1024 * 1024
_FIRST_ITEMS = 4
# Read at once: small items say nothing about how large those behind them are.
_MOST_ITEMS = 16

T = TypeVar("T")
K = TypeVar("K")
P = TypeVar("P", str, int)

PageLimit = Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT, description="Maximum number of items.")]


class TextPageParameters(Parameters, frozen=True, kw_only=True):
    """The parameters of a list whose cursor is a string."""

    limit: PageLimit = DEFAULT_LIMIT
    # Base64 (RFC 4648, section 5) without padding: every text of this form is a place in the list.
    cursor: (
        Annotated[
            str,
            msgspec.Meta(
                description=CURSOR, pattern="^([A-Za-z0-9_-]{4})*[A-Za-z0-9_-]{2,4}$", max_length=2048
            ),
        ]
        | None
    ) = None


class NumberPageParameters(Parameters, frozen=True, kw_only=True):
    """The parameters of a list whose cursor is a number."""

    limit: PageLimit = DEFAULT_LIMIT
    # 18 digits fit the 64 bits of every store.
    cursor: Annotated[str, msgspec.Meta(description=CURSOR, pattern="^[0-9]{1,18}$")] | None = None


def encode_cursor(key: str | int) -> str:
    if isinstance(key, int):
        return str(key)
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> str | None:
    """The text inside a `TextCursor`."""
    if cursor is None:
        return None
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode(errors="replace")


async def read_within(
    read: Callable[[K, int], Awaitable[Sequence[T]]],
    start: K,
    limit: int,
    *,
    key: Callable[[T], K],
    size_bytes: Callable[[T], int],
    max_bytes: int = MAX_PAGE_BYTES,
) -> tuple[list[T], bool]:
    """
    A page of items that may be large, and whether there may be more of them.

    `read` returns up to so many items after a key. It is asked for a few at a time, and for as many as fit according to
    those before, so that no more than a few large items are in memory beyond the page.
    """
    found: list[T] = []
    read_bytes, wanted = 0, min(limit + 1, _FIRST_ITEMS)
    while True:
        batch = await read(key(found[-1]) if found else start, wanted)
        for item in batch:
            if read_bytes >= max_bytes:
                # The rest of the batch is on the next page.
                return found, True
            found.append(item)
            read_bytes += size_bytes(item)
        # One more than the limit shows that there is another page.
        if len(found) > limit:
            return found[:limit], True
        if len(batch) < wanted:
            return found, False
        if read_bytes >= max_bytes:
            return found, True
        fitting = (max_bytes - read_bytes) * len(found) // max(read_bytes, 1)
        wanted = min(limit + 1 - len(found), max(fitting, 1), _MOST_ITEMS)


async def page_within(
    read: Callable[[P | None, int], Awaitable[Sequence[T]]],
    start: P | None,
    limit: int,
    *,
    key: Callable[[T], P],
    size_bytes: Callable[[T], int],
) -> tuple[list[T], str | None]:
    """As `read_within`, with the next cursor. `start`: the key of the last item of the page before."""

    def key_of(item: T) -> P | None:
        return key(item)

    found, more = await read_within(read, start, limit, key=key_of, size_bytes=size_bytes)
    return found, encode_cursor(key(found[-1])) if more else None


def page(found: Sequence[T], limit: int, key: Callable[[T], str | int]) -> tuple[Sequence[T], str | None]:
    """A page of items, and the next cursor. `found` has one item more than `limit` if there is another page."""
    if len(found) <= limit:
        return found, None
    kept = found[:limit]
    return kept, encode_cursor(key(kept[-1]))
