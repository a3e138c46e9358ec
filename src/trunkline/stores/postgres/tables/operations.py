"""The audit log, the processes of the system, and how much is waiting."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from trunkline.clock import Instant, after
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
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.session import Value, columns
from trunkline.stores.postgres.database.text_encoding import (
    HIGHEST_UUID,
    LOWEST_UUID,
    as_uuid,
    restored,
    restored_row,
)
from trunkline.stores.postgres.tables.task_claims import CANNOT_BE_CALLED, IS_CLAIMED, IS_REMOTE
from trunkline.stores.rows.operations import audit_entry, audit_values, process_record, process_values

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
_HEARTBEAT = """
    INSERT INTO processes(id, name, roles, pool, version, started_at, seen_at, until, reads_pieces)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1)
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, until = excluded.until
"""
# Two transactions that delete the same one do not wait for one another.
_FORGET_OLD = """
    DELETE FROM processes WHERE id = ANY(ARRAY(
        SELECT id FROM processes WHERE seen_at < $1 FOR UPDATE SKIP LOCKED))
"""
_PROCESSES = """
    SELECT id::text, name, roles, pool, version, started_at, seen_at, until FROM processes
    ORDER BY processes.id DESC LIMIT $1
"""


def _counted(what: str) -> str:
    return f"(SELECT count(*) FROM (SELECT 1 FROM {what} LIMIT $1) AS counted)"  # noqa: S608 - constants of this module


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
    "tasks_claimed": _counted(f"tasks WHERE {IS_CLAIMED}"),
    "tasks_remote": _counted(f"tasks WHERE {IS_REMOTE}"),
    "tasks_without_secret": _WITHOUT_SECRET,
    "dead_letters": _counted("dead_letters"),
}
_RUNS = {status: _counted(f"runs WHERE status = '{status}'") for status in RUN_STATUSES}
# One statement, or a run could be counted in two places.
_COUNT_QUEUES = f"SELECT {', '.join([*_RUNS.values(), *_QUEUES.values()])}"
# Runs that are under way though nothing will ever wake them: no input, no timer, no event to wait for, no task that is
# under way or will be sent again, no run that they have begun and that will tell them of its end. A task's id begins
# with its run's
# id and a slash; '0' is the character after the slash.
_COUNT_BACKLOG = f"""
    SELECT
        (SELECT coalesce(json_object_agg(status, number), '{{}}') FROM
            (SELECT status, count(*) AS number FROM runs GROUP BY status) AS by_status)::text,
        (SELECT count(*) FROM tasks WHERE status = 'queued'),
        ARRAY(SELECT (agent, count(*)) FROM tasks WHERE status = 'queued' GROUP BY agent),
        ARRAY(SELECT (name, options, coalesce(breaker, 'closed'))
            FROM agents LEFT JOIN agent_states ON agent = name WHERE options IS NOT NULL),
        (SELECT count(*) FROM tasks WHERE {IS_CLAIMED}),
        (SELECT count(*) FROM tasks WHERE {IS_REMOTE}),
        (SELECT count(*) FROM inbox WHERE applied = 0),
        (SELECT count(*) FROM timers),
        (SELECT count(*) FROM outbox),
        (SELECT count(*) FROM dead_letters),
        (SELECT count(*) FROM callbacks),
        (SELECT count(*) FROM push_configs WHERE disabled_at IS NOT NULL),
        (SELECT count(*) FROM tasks JOIN agents ON agents.name = tasks.agent
            WHERE tasks.status = 'queued' AND {CANNOT_BE_CALLED})
        + (SELECT count(*) FROM tasks JOIN agents ON agents.name = tasks.agent
            WHERE {IS_REMOTE} AND {CANNOT_BE_CALLED}),
        (SELECT count(*) FROM runs WHERE status IN ('PENDING', 'RUNNING')
            AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.run_id = runs.id AND applied = 0)
            AND NOT EXISTS (SELECT 1 FROM timers WHERE timers.run_id = runs.id)
            AND NOT EXISTS (SELECT 1 FROM event_waits WHERE event_waits.run_id = runs.id)
            AND NOT EXISTS (SELECT 1 FROM tasks WHERE status IN ('queued', 'claimed', 'remote')
                AND task_id >= runs.id || '/' AND task_id < runs.id || '0')
            AND NOT EXISTS (SELECT 1 FROM dispatches WHERE task_id >= runs.id || '/' AND task_id < runs.id || '0')
            AND NOT EXISTS (SELECT 1 FROM runs AS child WHERE child.parent_id = runs.id AND child.finished_at IS NULL))
"""  # noqa: S608 - as above


class PostgresAuditReads(PostgresReads):
    async def page(
        self,
        *,
        limit: int,
        before: str | None = None,
        who: str | None = None,
        kind: AuditKind | None = None,
        subject: str | None = None,
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
        return [audit_entry(restored_row(row)) for row in await self._rows(sql, *values)]

    async def page_by_time(
        self, *, limit: int, after: AuditPosition, where: AuditFilter = ANY_ENTRY
    ) -> list[AuditEntry]:
        conditions = ["(at, audit.id) > ($1, $2::uuid)"]
        values: list[Value] = [after.at, as_uuid(after.id) or LOWEST_UUID, limit]
        for name, value in msgspec.structs.asdict(where).items():
            if value is not None:
                values.append(value)
                conditions.append(f"{name} = ${len(values)}")
        sql = f"SELECT {_ENTRY} FROM audit WHERE {' AND '.join(conditions)} ORDER BY at, audit.id LIMIT $3"  # noqa: S608 - as above
        return [audit_entry(restored_row(row)) for row in await self._rows(sql, *values)]


class PostgresAuditWrites(PostgresWrites):
    __slots__ = ()

    async def put(self, entries: Sequence[NewAuditEntry]) -> None:
        if entries:
            rows = [audit_values(entry, self._now) for entry in entries]
            await self._db.execute(_PUT_ENTRIES, *columns(rows, 7))

    async def delete(self, before: Instant, limit: int) -> int:
        return await self._db.execute(_DELETE_ENTRIES, before, limit)


class PostgresProcessReads(PostgresReads):
    async def page(self, *, limit: int) -> list[SeenProcess]:
        async with self._pool.reader() as db:
            now = await self._clock.now(db)
            return [process_record(restored_row(row), now) for row in await db.rows(_PROCESSES, limit)]


class PostgresProcessWrites(PostgresWrites):
    __slots__ = ()

    async def heartbeat(self, process: Process, lasts: timedelta, keep: timedelta) -> None:
        await self._db.execute(_HEARTBEAT, *process_values(process, self._now, lasts))
        await self._db.execute(_FORGET_OLD, after(self._now, -keep))

    async def delete(self, process_id: str) -> None:
        await self._db.execute("DELETE FROM processes WHERE id = $1", process_id)


class PostgresBacklogReads(PostgresReads):
    async def count(self) -> Backlog:
        row = await self._first(_COUNT_BACKLOG)
        assert row is not None  # noqa: S101 - a SELECT of one row
        (
            statuses,
            queued,
            by_agent,
            breakers,
            claimed,
            remote,
            inbox,
            timers,
            outbox,
            dead_letters,
            callbacks,
            disabled_push_configs,
            without_secret,
            stuck,
        ) = row
        return Backlog(
            runs_by_status=msgspec.json.decode(statuses, type=dict[str, int]),
            queued_tasks=queued,
            claimed_tasks=claimed,
            remote_tasks=remote,
            inbox=inbox,
            timers=timers,
            # A row has all messages of one transaction: the number of rows says as much.
            outbox=outbox,
            dead_letters=dead_letters,
            callbacks=callbacks,
            disabled_push_configs=disabled_push_configs,
            tasks_without_secret=without_secret,
            queued_by_agent={restored(agent): number for agent, number in by_agent},
            breakers=breakers_of(
                (restored(name), restored(options), status) for name, options, status in breakers
            ),
            without_wake_reason=stuck,
        )

    async def queues(self, most: int) -> Queues:
        async with self._pool.reader() as db:
            row = await db.first(_COUNT_QUEUES, most, await self._clock.now(db))
        assert row is not None  # noqa: S101 - a SELECT of one row
        return Queues(
            runs=dict(zip(RUN_STATUSES, row, strict=False)),
            **dict(zip(_QUEUES, row[len(_RUNS) :], strict=True)),
        )
