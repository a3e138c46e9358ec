"""Records that could not be read or applied."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.clock import Instant
from trunkline.stores.base import DeadLetter
from trunkline.stores.postgres.database.session import Row, Session, columns
from trunkline.stores.postgres.database.text_encoding import HIGHEST_UUID, as_uuid, restored
from trunkline.stores.rows.messaging import origin_of, pack_headers, unpack_headers

_COLUMNS = 'id::text, topic, partition, "offset", key, value, headers, reason, at'
_SELECT = f"SELECT {_COLUMNS} FROM dead_letters"  # noqa: S608 - constants of this module
_INSERT = """
    INSERT INTO dead_letters(origin, id, topic, partition, "offset", key, value, headers, reason, at)
    SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::int[], $5::bigint[], $6::bytea[], $7::bytea[],
        $8::bytea[], $9::text[], $10::bigint[])
    ON CONFLICT (origin) DO NOTHING
"""


async def put_dead_letters(db: Session, letters: Sequence[DeadLetter]) -> None:
    rows = sorted(
        (
            (
                origin_of(letter),
                letter.id,
                letter.topic,
                letter.partition,
                letter.offset,
                letter.key,
                letter.value,
                pack_headers(letter.headers),
                letter.reason,
                letter.at,
            )
            for letter in letters
        ),
        key=lambda row: row[0],
    )
    if rows:
        await db.execute(_INSERT, *columns(rows, 10))


async def take_dead_letter(db: Session, letter_id: str) -> DeadLetter | None:
    row = await db.first(
        f"DELETE FROM dead_letters WHERE id = $1 RETURNING {_COLUMNS}",  # noqa: S608 - as above
        as_uuid(letter_id),
    )
    return None if row is None else _letter(row)


async def dead_letter(db: Session, letter_id: str) -> DeadLetter | None:
    row = await db.first(f"{_SELECT} WHERE id = $1", as_uuid(letter_id))
    return None if row is None else _letter(row)


async def dead_letters(db: Session, *, limit: int, before: str | None) -> list[DeadLetter]:
    if before is not None and as_uuid(before) is None:
        return []
    page = await db.rows(
        f"{_SELECT} WHERE id < $1::uuid ORDER BY id DESC LIMIT $2", before or HIGHEST_UUID, limit
    )
    return [_letter(row) for row in page]


def _letter(row: Row) -> DeadLetter:
    letter_id, topic, partition, offset, key, value, headers, reason, at = row
    return DeadLetter(
        id=letter_id,
        topic=restored(topic),
        partition=partition,
        offset=offset,
        key=key,
        value=value,
        headers=unpack_headers(headers),
        reason=restored(reason),
        at=Instant(at),
    )
