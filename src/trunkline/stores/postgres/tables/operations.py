"""Who has changed what, which processes live, and how much waits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

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
from trunkline.stores.postgres.database.session import Session, Value, columns, restored_texts
from trunkline.stores.postgres.database.text_encoding import HIGHEST_UUID, as_uuid, restored
from trunkline.stores.postgres.tables.task_claims import CANNOT_BE_CALLED
from trunkline.stores.rows.operations import read_entry, read_process, written_entry, written_process

_ENTRY = "id::text, at, who, kind, action, subject, detail"
_PUT_ENTRIES = """
    INSERT INTO audit(id, at, who, kind, action, subject, detail)
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[])
    ON CONFLICT (id) DO NOTHING
"""
_DELETE_ENTRIES = """
    DELETE FROM audit WHERE id = ANY(ARRAY(
        SELECT id FROM audit WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))
"""
_NOTE_PROCESS = """
    INSERT INTO processes(id, name, roles, pool, version, started_at, seen_at, until)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, until = excluded.until
"""
# Two that forget the same one do not wait for one another.
_FORGET_OLD = """
    DELETE FROM processes WHERE id = ANY(ARRAY(
        SELECT id FROM processes WHERE seen_at < $1 FOR UPDATE SKIP LOCKED))
"""
_PROCESSES = """
    SELECT id::text, name, roles, pool, version, started_at, seen_at, until FROM processes
    ORDER BY processes.id DESC LIMIT $1
"""
# By the bytes of their names, as everywhere.
_POOLS = 'SELECT DISTINCT pool COLLATE "C" AS pool FROM agents WHERE pool IS NOT NULL ORDER BY pool LIMIT $1'


def _counted(what: str) -> str:
    return f"(SELECT count(*) FROM (SELECT 1 FROM {what} LIMIT $1) AS counted)"  # noqa: S608 - constants of this module


# In the words of the index of busy tasks.
_BUSY = "status IN ('claimed', 'remote')"
_WITHOUT_SECRET = f"""
    (SELECT count(*) FROM (SELECT agent FROM tasks WHERE status = 'queued' LIMIT $1) AS waiting
        JOIN agents ON agents.name = waiting.agent WHERE {CANNOT_BE_CALLED})
"""  # noqa: S608 - as above
_QUEUES = {
    "inbox": _counted("inbox WHERE applied = 0"),
    "timers": _counted("timers"),
    "timers_due": _counted("timers WHERE due <= $2"),
    "outbox": _counted("outbox"),
    "dispatches": _counted("dispatches"),
    "tasks_queued": _counted("tasks WHERE status = 'queued'"),
    "tasks_claimed": _counted(f"tasks WHERE status = 'claimed' AND {_BUSY}"),
    "tasks_remote": _counted("tasks WHERE status = 'remote'"),
    "tasks_without_secret": _WITHOUT_SECRET,
    "dead_letters": _counted("dead_letters"),
}
_RUNS = {status: _counted(f"runs WHERE status = '{status}'") for status in RUN_STATUSES}
# One statement, or a run could be counted in two places.
_COUNT = f"SELECT {', '.join([*_RUNS.values(), *_QUEUES.values()])}"


async def put_audit(db: Session, entries: Sequence[NewAuditEntry], now: Instant) -> None:
    if entries:
        await db.execute(_PUT_ENTRIES, *columns([written_entry(entry, now) for entry in entries], 7))


async def delete_audit(db: Session, before: Instant, limit: int) -> int:
    return await db.execute(_DELETE_ENTRIES, before, limit)


async def audit(
    db: Session,
    *,
    limit: int,
    before: str | None,
    who: str | None,
    kind: AuditKind | None,
    subject: str | None,
) -> list[AuditEntry]:
    if before is not None and as_uuid(before) is None:
        return []
    conditions = ["id < $1::uuid"]
    values: list[Value] = [before or HIGHEST_UUID, limit]
    for column, value in (("who", who), ("kind", kind), ("subject", subject)):
        if value is not None:
            values.append(value)
            conditions.append(f"{column} = ${len(values)}")
    sql = f"SELECT {_ENTRY} FROM audit WHERE {' AND '.join(conditions)} ORDER BY audit.id DESC LIMIT $2"  # noqa: S608 - as above
    return [read_entry(*restored_texts(row)) for row in await db.rows(sql, *values)]


async def note_process(
    db: Session, process: Process, now: Instant, lasts: timedelta, keep: timedelta
) -> None:
    await db.execute(_NOTE_PROCESS, *written_process(process, now, lasts))
    await db.execute(_FORGET_OLD, after(now, -keep))


async def forget_process(db: Session, process_id: str) -> None:
    await db.execute("DELETE FROM processes WHERE id = $1", process_id)


async def processes(db: Session, now: Instant, *, limit: int) -> list[SeenProcess]:
    return [read_process(now, *restored_texts(row)) for row in await db.rows(_PROCESSES, limit)]


async def pools(db: Session, *, limit: int) -> list[str]:
    return [restored(row[0]) for row in await db.rows(_POOLS, limit)]


async def count(db: Session, now: Instant, most: int) -> Queues:
    row = await db.first(_COUNT, most, now)
    assert row is not None  # noqa: S101 - a SELECT of one row
    return Queues(
        runs=dict(zip(RUN_STATUSES, row, strict=False)), **dict(zip(_QUEUES, row[len(_RUNS) :], strict=True))
    )
