"""What people read of a run: its events, and what was on the wire."""

from __future__ import annotations

from trunkline.ids import RunId
from trunkline.stores.base import EventRecord
from trunkline.stores.postgres.driver import Session
from trunkline.stores.postgres.texts import as_uuid


async def events(db: Session, run_id: RunId, *, after: int, limit: int) -> list[EventRecord]:
    page = await db.rows(
        "SELECT seq, type, at, data FROM events WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
        as_uuid(run_id),
        after,
        limit,
    )
    return [EventRecord(*row) for row in page]


async def exchanges(
    db: Session, run_id: RunId, *, after: int, limit: int, step: str | None
) -> list[tuple[int, bytes]]:
    page = await db.rows(
        "SELECT id, record FROM exchanges WHERE run_id = $1 AND id > $2 AND ($3::text IS NULL OR step = $3)"
        " ORDER BY id LIMIT $4",
        as_uuid(run_id),
        after,
        step,
        limit,
    )
    return [(row_id, record) for row_id, record in page]
