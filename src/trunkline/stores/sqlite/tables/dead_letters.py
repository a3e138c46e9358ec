"""Records that could not be read or applied."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from trunkline.clock import Instant
from trunkline.stores.base import DeadLetter
from trunkline.stores.rows.messaging import origin_of, pack_headers, unpack_headers
from trunkline.stores.sqlite.database.statements import Row, execute_many, first, rows

_COLUMNS = 'id, topic, partition, "offset", key, value, headers, reason, at'
_SELECT = f"SELECT {_COLUMNS} FROM dead_letters"  # noqa: S608 - constants of this module
_INSERT = f"""
    INSERT INTO dead_letters({_COLUMNS}, origin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT(origin) DO NOTHING
"""  # noqa: S608 - as above


def put_dead_letters(db: apsw.Connection, letters: Sequence[DeadLetter]) -> None:
    execute_many(
        db,
        _INSERT,
        [
            (
                letter.id,
                letter.topic,
                letter.partition,
                letter.offset,
                letter.key,
                letter.value,
                pack_headers(letter.headers),
                letter.reason,
                letter.at,
                origin_of(letter),
            )
            for letter in letters
        ],
    )


def take_dead_letter(db: apsw.Connection, letter_id: str) -> DeadLetter | None:
    row = first(db, f"DELETE FROM dead_letters WHERE id = ? RETURNING {_COLUMNS}", (letter_id,))  # noqa: S608 - as above
    return None if row is None else _letter(row)


def dead_letter(db: apsw.Connection, letter_id: str) -> DeadLetter | None:
    row = first(db, f"{_SELECT} WHERE id = ?", (letter_id,))
    return None if row is None else _letter(row)


def dead_letters(db: apsw.Connection, *, limit: int, before: str | None) -> list[DeadLetter]:
    page = rows(db, f"{_SELECT} WHERE ?1 IS NULL OR id < ?1 ORDER BY id DESC LIMIT ?2", (before, limit))
    return [_letter(row) for row in page]


def _letter(row: Row) -> DeadLetter:
    letter_id, topic, partition, offset, key, value, headers, reason, at = row
    return DeadLetter(
        id=letter_id,
        topic=topic,
        partition=partition,
        offset=offset,
        key=key,
        value=value,
        headers=unpack_headers(headers),
        reason=reason,
        at=Instant(at),
    )
