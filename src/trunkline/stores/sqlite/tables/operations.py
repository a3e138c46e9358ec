"""Who has changed what, which processes live, and how much waits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import apsw

from trunkline.clock import Instant, after
from trunkline.machine.state import RUN_STATUSES
from trunkline.stores.port.operations import (
    AuditEntry,
    AuditKind,
    NewAuditEntry,
    Process,
    Queues,
    SeenProcess,
)
from trunkline.stores.rows.operations import read_entry, read_process, written_entry, written_process
from trunkline.stores.sqlite.database.connection import connect, translated_errors
from trunkline.stores.sqlite.database.statements import Value, execute, execute_many, first, rows
from trunkline.stores.sqlite.tables.tasks import CAN_BE_CALLED

_ENTRY = "id, at, who, kind, action, subject, detail"
_PUT_ENTRY = f"""
    INSERT INTO audit({_ENTRY}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO NOTHING
"""  # noqa: S608 - constants of this module
_PROCESS = "id, name, roles, pool, version, started_at"
_NOTE_PROCESS = f"""
    INSERT INTO processes({_PROCESS}, seen_at, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT(id) DO UPDATE SET seen_at = excluded.seen_at, until = excluded.until
"""  # noqa: S608 - as above
# In the words of the index of busy tasks, or SQLite would read every task that there ever was.
_BUSY = "status IN ('claimed', 'remote')"
_WITHOUT_SECRET = f"""
    SELECT count(*) FROM (SELECT agent FROM tasks WHERE status = 'queued' LIMIT ?1) AS tasks WHERE NOT {CAN_BE_CALLED}
"""  # noqa: S608 - as above


def put_audit(db: apsw.Connection, entries: Sequence[NewAuditEntry], now: Instant) -> None:
    execute_many(db, _PUT_ENTRY, [written_entry(entry, now) for entry in entries])


def delete_audit(db: apsw.Connection, before: Instant, limit: int) -> int:
    return execute(
        db,
        "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ? ORDER BY at LIMIT ?)",
        (before, limit),
    )


def audit(
    db: apsw.Connection,
    *,
    limit: int,
    before: str | None,
    who: str | None,
    kind: AuditKind | None,
    subject: str | None,
) -> list[AuditEntry]:
    conditions = ["1"]
    values: list[Value] = []
    for condition, value in (
        ("id < ?", before),
        ("who = ?", who),
        ("kind = ?", kind),
        ("subject = ?", subject),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    sql = f"SELECT {_ENTRY} FROM audit WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?"  # noqa: S608 - as above
    return [read_entry(*row) for row in rows(db, sql, [*values, limit])]


def note_process(
    db: apsw.Connection, process: Process, now: Instant, lasts: timedelta, keep: timedelta
) -> None:
    execute(db, _NOTE_PROCESS, written_process(process, now, lasts))
    execute(db, "DELETE FROM processes WHERE seen_at < ?", (after(now, -keep),))


def forget_process(db: apsw.Connection, process_id: str) -> None:
    execute(db, "DELETE FROM processes WHERE id = ?", (process_id,))


def processes(db: apsw.Connection, now: Instant, *, limit: int) -> list[SeenProcess]:
    sql = f"SELECT {_PROCESS}, seen_at, until FROM processes ORDER BY id DESC LIMIT ?"  # noqa: S608 - as above
    return [read_process(now, *row) for row in rows(db, sql, (limit,))]


def pools(db: apsw.Connection, *, limit: int) -> list[str]:
    sql = "SELECT DISTINCT pool FROM agents WHERE pool IS NOT NULL ORDER BY pool LIMIT ?"
    return [row[0] for row in rows(db, sql, (limit,))]


def count(path: Path, now: Instant, most: int) -> Queues:
    with translated_errors(), closing(connect(path)) as db:
        # One snapshot, or a run could be counted in two places.
        execute(db, "BEGIN")

        def number(what: str) -> int:
            return _number(db, f"SELECT count(*) FROM (SELECT 1 FROM {what} LIMIT ?1)", most)  # noqa: S608 - as above

        return Queues(
            runs={status: number(f"runs WHERE status = '{status}'") for status in RUN_STATUSES},
            inbox=number("inbox WHERE applied = 0"),
            timers=number("timers"),
            timers_due=number(f"timers WHERE due <= {now}"),
            outbox=number("outbox"),
            dispatches=number("dispatches"),
            tasks_queued=number("tasks WHERE status = 'queued'"),
            tasks_claimed=number(f"tasks WHERE status = 'claimed' AND {_BUSY}"),
            tasks_remote=number("tasks WHERE status = 'remote'"),
            tasks_without_secret=_number(db, _WITHOUT_SECRET, most),
            dead_letters=number("dead_letters"),
        )


def _number(db: apsw.Connection, sql: str, most: int) -> int:
    row = first(db, sql, (most,))
    return 0 if row is None else row[0]
