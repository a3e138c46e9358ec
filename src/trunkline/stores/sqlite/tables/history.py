"""What people read of a run: its events, and what was on the wire."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from trunkline.ids import RunId
from trunkline.machine.events import step_event_prefix
from trunkline.stores.base import EventRecord, ExchangeRecord
from trunkline.stores.sqlite.database.statements import execute_many, rows


def events(
    db: apsw.Connection, run_id: RunId, *, after: int, limit: int, step: str | None
) -> list[EventRecord]:
    page = rows(
        db,
        "SELECT seq, type, at, data FROM events WHERE run_id = ?1 AND seq > ?2"
        " AND (?3 IS NULL OR substr(data, 1, length(?3)) = ?3) ORDER BY seq LIMIT ?4",
        (run_id, after, None if step is None else step_event_prefix(step), limit),
    )
    return [EventRecord(*row) for row in page]


def put_exchanges(db: apsw.Connection, exchanges: Sequence[ExchangeRecord]) -> None:
    execute_many(
        db,
        "INSERT INTO exchanges(run_id, step, attempt, record) VALUES (?, ?, ?, ?)",
        ((exchange.run_id, exchange.step, exchange.attempt, exchange.record) for exchange in exchanges),
    )


def exchanges(
    db: apsw.Connection, run_id: RunId, *, after: int, limit: int, step: str | None, attempt: int | None
) -> list[tuple[int, bytes]]:
    page = rows(
        db,
        "SELECT id, record FROM exchanges WHERE run_id = ?1 AND id > ?2 AND (?3 IS NULL OR step = ?3)"
        " AND (?4 IS NULL OR attempt = ?4) ORDER BY id LIMIT ?5",
        (run_id, after, step, attempt, limit),
    )
    return [(row_id, record) for row_id, record in page]
