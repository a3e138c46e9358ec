"""What people read of a run: its events, and what was on the wire."""

from __future__ import annotations

from trunkline.ids import RunId
from trunkline.machine.events import step_event_prefix
from trunkline.stores.base import EventRecord
from trunkline.stores.postgres.database.session import Session
from trunkline.stores.postgres.database.text_encoding import as_uuid, escaped


async def events(
    db: Session, run_id: RunId, *, after: int, limit: int, step: str | None
) -> list[EventRecord]:
    page = await db.rows(
        "SELECT seq, type, at, data FROM events WHERE run_id = $1 AND seq > $2"
        " AND ($3::bytea IS NULL OR substr(data, 1, length($3)) = $3) ORDER BY seq LIMIT $4",
        as_uuid(run_id),
        after,
        None if step is None else step_event_prefix(step),
        limit,
    )
    return [EventRecord(*row) for row in page]


async def exchanges(
    db: Session, run_id: RunId, *, after: int, limit: int, step: str | None, attempt: int | None
) -> list[tuple[int, bytes]]:
    page = await db.rows(
        "SELECT id, record FROM exchanges WHERE run_id = $1 AND id > $2 AND ($3::text IS NULL OR step = $3)"
        " AND ($4::integer IS NULL OR attempt = $4) ORDER BY id LIMIT $5",
        as_uuid(run_id),
        after,
        None if step is None else escaped(step),
        attempt,
        limit,
    )
    return [(row_id, record) for row_id, record in page]
