"""
Several statements as one: a round trip costs more than most of them.

All parts see the database as it was before, so none may need what another one writes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from trunkline.stores.postgres.database.session import Column

_PLACE = re.compile(r"\$(\d+)")


class StatementPart(NamedTuple):
    """A statement that writes, with the values of its own `$1`, `$2` and so on."""

    sql: str
    values: Sequence[Column]


def combined(parts: Sequence[StatementPart], last: str | None = None) -> tuple[str, list[Column]]:
    """
    One statement, and its values.

    `last` comes after all parts, and may read what they return as `part_1` and so on; the parts may read of those
    before them.
    """
    values = [column for part in parts for column in part.values]
    return _combined(tuple((part.sql, len(part.values)) for part in parts), last), values


# Few combinations ever occur: each is made, and prepared by the server, once.
@lru_cache(maxsize=256)
def _combined(parts: tuple[tuple[str, int], ...], last: str | None) -> str:
    statements: list[str] = []
    used = 0
    for sql, count in parts:
        statements.append(_shifted(sql, used))
        used += count
    if last is None:
        last = statements.pop()
    if not statements:
        return last
    named = ", ".join(f"part_{number} AS ({sql})" for number, sql in enumerate(statements, 1))
    return f"WITH {named} {last}"


def _shifted(sql: str, by: int) -> str:
    return _PLACE.sub(lambda match: f"${int(match[1]) + by}", sql)
