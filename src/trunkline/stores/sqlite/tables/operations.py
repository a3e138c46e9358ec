"""The audit log, the processes of the system, and how much is waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import apsw
import msgspec

from trunkline.clock import Clock, Instant, after
from trunkline.machine.state import RUN_STATUSES
from trunkline.stores.agent_limits import breakers_of
from trunkline.stores.port.operations import (
    ANY_ENTRY,
    AuditEntry,
    AuditFilter,
    AuditKind,
    AuditPosition,
    Backlog,
    NewAuditEntry,
    Process,
    Queues,
    SeenProcess,
)
from trunkline.stores.rows.operations import audit_entry, audit_values, process_record, process_values
from trunkline.stores.sqlite.database.connection import connect, translated_errors
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import Value, execute, execute_many, first, rows
from trunkline.stores.sqlite.tables.deferred_tasks import CAN_BE_CALLED

_ENTRY = "id, at, who, kind, action, subject, detail"
_PUT_ENTRY = f"""
    INSERT INTO audit({_ENTRY}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO NOTHING
"""  # noqa: S608 - constants of this module
_PROCESS = "id, name, roles, pool, version, started_at"
_HEARTBEAT = f"""
    INSERT INTO processes({_PROCESS}, seen_at, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT(id) DO UPDATE SET seen_at = excluded.seen_at, until = excluded.until
"""  # noqa: S608 - as above
# In the words of the index of busy tasks, or SQLite would read every task that there ever was.
_BUSY = "status IN ('claimed', 'remote')"
_QUEUED_WITHOUT_SECRET = f"""
    SELECT count(*) FROM (SELECT agent FROM tasks WHERE status = 'queued' LIMIT ?1) AS tasks WHERE NOT {CAN_BE_CALLED}
"""  # noqa: S608 - as above
# Runs that are under way though nothing will ever wake them: no input, no timer, no event to wait for, no task that is
# under way or will be sent again, no run that they have begun and that will tell them of its end.
_WITHOUT_WAKE_REASON = """
    SELECT count(*) FROM runs WHERE status IN ('PENDING', 'RUNNING')
        AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.run_id = runs.id AND applied = 0)
        AND NOT EXISTS (SELECT 1 FROM timers WHERE timers.run_id = runs.id)
        AND NOT EXISTS (SELECT 1 FROM event_waits WHERE event_waits.run_id = runs.id)
        AND NOT EXISTS (SELECT 1 FROM tasks WHERE task_id >= runs.id || '/' AND task_id < runs.id || '0'
            AND status IN ('queued', 'claimed', 'remote'))
        AND NOT EXISTS (SELECT 1 FROM dispatches WHERE task_id >= runs.id || '/' AND task_id < runs.id || '0')
        AND NOT EXISTS (SELECT 1 FROM runs AS child WHERE child.parent_id = runs.id AND child.finished_at IS NULL)
"""
_BREAKERS = """
    SELECT name, options, coalesce(breaker, 'closed') FROM agents LEFT JOIN agent_states ON agent = name
    WHERE options IS NOT NULL
"""
_WITHOUT_SECRET = f"SELECT count(*) FROM tasks WHERE status IN ('queued', 'remote') AND NOT {CAN_BE_CALLED}"  # noqa: S608 - as above


class SqliteAuditReads(SqliteReads):
    async def page(
        self,
        *,
        limit: int,
        before: str | None = None,
        who: str | None = None,
        kind: AuditKind | None = None,
        subject: str | None = None,
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
        return [audit_entry(row) for row in rows(self._db, sql, [*values, limit])]

    async def page_by_time(
        self, *, limit: int, after: AuditPosition, where: AuditFilter = ANY_ENTRY
    ) -> list[AuditEntry]:
        given = [(name, value) for name, value in msgspec.structs.asdict(where).items() if value is not None]
        conditions = "".join(f" AND {name} = ?" for name, _ in given)
        sql = f"SELECT {_ENTRY} FROM audit WHERE (at, id) > (?, ?){conditions} ORDER BY at, id LIMIT ?"  # noqa: S608 - as above
        found = rows(self._db, sql, [*after, *(value for _, value in given), limit])
        return [audit_entry(row) for row in found]


class SqliteAuditWrites(SqliteWrites):
    __slots__ = ()

    async def put(self, entries: Sequence[NewAuditEntry]) -> None:
        execute_many(self._db, _PUT_ENTRY, [audit_values(entry, self._now) for entry in entries])

    async def delete(self, before: Instant, limit: int) -> int:
        return execute(
            self._db,
            "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ? ORDER BY at LIMIT ?)",
            (before, limit),
        )


class SqliteProcessReads(SqliteReads):
    async def page(self, *, limit: int) -> list[SeenProcess]:
        sql = f"SELECT {_PROCESS}, seen_at, until FROM processes ORDER BY id DESC LIMIT ?"  # noqa: S608 - as above
        now = self._clock.now()
        return [process_record(row, now) for row in rows(self._db, sql, (limit,))]


class SqliteProcessWrites(SqliteWrites):
    __slots__ = ()

    async def heartbeat(self, process: Process, lasts: timedelta, keep: timedelta) -> None:
        execute(self._db, _HEARTBEAT, process_values(process, self._now, lasts))
        execute(self._db, "DELETE FROM processes WHERE seen_at < ?", (after(self._now, -keep),))

    async def delete(self, process_id: str) -> None:
        execute(self._db, "DELETE FROM processes WHERE id = ?", (process_id,))


class SqliteBacklogReads:
    """Counting runs in a thread, on a connection of its own: it may take long where there are many runs."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        # `queues` is cheap and does not wait for `count`, which is not.
        self._counting = asyncio.Lock()
        self._queues = asyncio.Lock()

    async def count(self) -> Backlog:
        async with self._counting:
            return await asyncio.to_thread(_count_backlog, self._path)

    async def queues(self, most: int) -> Queues:
        async with self._queues:
            return await asyncio.to_thread(_count_queues, self._path, self._clock.now(), most)


def _count_backlog(path: Path) -> Backlog:
    with translated_errors(), closing(connect(path)) as db:
        # One snapshot, or a run could be counted in two places.
        execute(db, "BEGIN")
        tasks = {
            status: _number(db, f"SELECT count(*) FROM tasks WHERE status = '{status}'")  # noqa: S608 - constants
            for status in ("queued", "claimed", "remote")
        }
        by_agent = dict(rows(db, "SELECT agent, count(*) FROM tasks WHERE status = 'queued' GROUP BY agent"))
        return Backlog(
            runs_by_status=dict(rows(db, "SELECT status, count(*) FROM runs GROUP BY status")),
            queued_tasks=tasks["queued"],
            claimed_tasks=tasks["claimed"],
            remote_tasks=tasks["remote"],
            inbox=_number(db, "SELECT count(*) FROM inbox WHERE applied = 0"),
            timers=_number(db, "SELECT count(*) FROM timers"),
            # A row has all messages of one transaction: the number of rows says as much.
            outbox=_number(db, "SELECT count(*) FROM outbox"),
            dead_letters=_number(db, "SELECT count(*) FROM dead_letters"),
            callbacks=_number(db, "SELECT count(*) FROM callbacks"),
            disabled_push_configs=_number(
                db, "SELECT count(*) FROM push_configs WHERE disabled_at IS NOT NULL"
            ),
            tasks_without_secret=_number(db, _WITHOUT_SECRET),
            queued_by_agent=by_agent,
            breakers=breakers_of(rows(db, _BREAKERS)),
            without_wake_reason=_number(db, _WITHOUT_WAKE_REASON),
        )


def _count_queues(path: Path, now: Instant, most: int) -> Queues:
    with translated_errors(), closing(connect(path)) as db:
        # One snapshot, or a run could be counted in two places.
        execute(db, "BEGIN")

        def number(what: str) -> int:
            return _number(db, f"SELECT count(*) FROM (SELECT 1 FROM {what} LIMIT ?1)", (most,))  # noqa: S608 - as above

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
            tasks_without_secret=_number(db, _QUEUED_WITHOUT_SECRET, (most,)),
            dead_letters=number("dead_letters"),
        )


def _number(db: apsw.Connection, sql: str, values: Sequence[Value] = ()) -> int:
    row = first(db, sql, values)
    return 0 if row is None else row[0]
