"""The history of agents: their events, their checks, and what is recorded while an agent migrates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from trunkline.agents.migration.routing import EndpointName
from trunkline.stores.port.agents.agent_events import (
    AgentEvent,
    CheckRecord,
    ComparisonRecord,
    Grade,
    NewAgentEvent,
)
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.session import Session, Value, columns
from trunkline.stores.postgres.database.text_encoding import HIGHEST_UUID, as_uuid, restored_row
from trunkline.stores.rows import Row
from trunkline.stores.rows.agents import (
    agent_event,
    agent_event_values,
    check_record,
    check_values,
    comparison_record,
    comparison_values,
    grade_of_check,
)

# A transaction that adds an event waits until the one before is visible to all; readers go on.
_LOCK = "LOCK TABLE agent_events IN SHARE ROW EXCLUSIVE MODE"
_EVENTS = "SELECT id, agent_id::text, agent, kind, at, who, why, data FROM agent_events"
_PUT_EVENTS = """
    INSERT INTO agent_events(id, agent_id, agent, kind, at, who, why, data)
    SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[],
        $8::bytea[])
"""
_LATEST = """
    SELECT last.* FROM unnest($1::uuid[]) AS wanted(id) CROSS JOIN LATERAL (
        SELECT id, agent_id::text, agent, kind, at, who, why, data FROM agent_events
        WHERE agent_id = wanted.id AND kind = 'migration' ORDER BY id DESC LIMIT 1) AS last
"""
_CHECKS = """
    SELECT id::text, agent_id::text, at, url, protocol, active, grade, passed, report FROM agent_checks
    WHERE agent_id = $1
"""
_PUT_CHECK = """
    INSERT INTO agent_checks(id, agent_id, at, url, protocol, active, grade, passed, report)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
_COMPARISONS = """
    SELECT id::text, agent_id::text, since, run_id::text, step, at, verdict, record FROM comparisons
    WHERE agent_id = $1
"""
_PUT_COMPARISONS = """
    INSERT INTO comparisons(id, agent_id, since, run_id, step, at, verdict, record)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::uuid[], $5::text[], $6::bigint[], $7::text[],
        $8::bytea[])
"""
# All but the last `$2` of each agent.
_DROP = """
    DELETE FROM {table} USING unnest($1::uuid[]) AS wanted(id) WHERE {table}.agent_id = wanted.id AND {table}.id <=
        (SELECT id FROM {table} AS kept WHERE kept.agent_id = wanted.id ORDER BY kept.id DESC LIMIT 1 OFFSET $2)
"""
_DROP_CHECKS = _DROP.format(table="agent_checks")
_DROP_COMPARISONS = _DROP.format(table="comparisons")
# So that there is a row to lock; nothing is known of calls that are empty.
_MAKE_SIDES = """
    INSERT INTO agent_sides(agent_id, side, calls)
    SELECT wanted.id, sides.side, ''::bytea FROM unnest($1::uuid[]) AS wanted(id), unnest($2::text[]) AS sides(side)
    ORDER BY wanted.id, sides.side
    ON CONFLICT (agent_id, side) DO NOTHING
"""
_LOCK_SIDES = """
    SELECT agent_id::text, side, calls FROM agent_sides WHERE agent_id = ANY($1::uuid[])
    ORDER BY agent_id, side FOR UPDATE
"""
_PUT_SIDES = """
    INSERT INTO agent_sides(agent_id, side, calls) SELECT * FROM unnest($1::uuid[], $2::text[], $3::bytea[])
    ON CONFLICT (agent_id, side) DO UPDATE SET calls = excluded.calls
"""
_SIDES: tuple[EndpointName, ...] = ("new", "old")
_GRADES = """
    SELECT last.* FROM unnest($1::uuid[]) AS wanted(id) CROSS JOIN LATERAL (
        SELECT agent_id::text, id::text, at, grade, passed FROM agent_checks WHERE agent_id = wanted.id
        ORDER BY id DESC LIMIT 1
    ) AS last
"""


class PostgresAgentEventReads(PostgresReads):
    async def last_id(self) -> int:
        async with self._pool.reader() as db:
            return await _last_id(db)

    async def latest_migrations(self, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
        async with self._pool.reader() as db:
            return await _latest_migrations(db, agent_ids)

    async def migrations_since(self, after: int) -> list[AgentEvent]:
        found = await self._rows(f"{_EVENTS} WHERE kind = 'migration' AND id > $1 ORDER BY id", after)
        return [agent_event(restored_row(row)) for row in found]

    async def page(
        self,
        *,
        limit: int,
        before: int | None = None,
        agent_id: str | None = None,
        agent: str | None = None,
    ) -> list[AgentEvent]:
        condition = "($1::bigint IS NULL OR id < $1)"
        values: list[Value] = [before, limit]
        if agent_id is not None:
            values.append(as_uuid(agent_id))
            condition += f" AND agent_id = ${len(values)}"
        if agent is not None:
            values.append(agent)
            condition += f" AND agent = ${len(values)}"
        page = await self._rows(f"{_EVENTS} WHERE {condition} ORDER BY id DESC LIMIT $2", *values)
        return [agent_event(restored_row(row)) for row in page]


class PostgresAgentEventWrites(PostgresWrites):
    __slots__ = ()

    async def lock(self) -> None:
        await self._db.command(_LOCK)

    async def last_id(self) -> int:
        return await _last_id(self._db)

    async def latest_migrations(self, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
        return await _latest_migrations(self._db, agent_ids)

    async def put(self, events: Sequence[NewAgentEvent]) -> list[AgentEvent]:
        await self.lock()
        last = await _last_id(self._db)
        numbered = [event.numbered(last + place, self._now) for place, event in enumerate(events, start=1)]
        await self._db.execute(_PUT_EVENTS, *columns([agent_event_values(event) for event in numbered], 8))
        return numbered


async def _last_id(db: Session) -> int:
    row = await db.first("SELECT coalesce(max(id), 0) FROM agent_events")
    return 0 if row is None else row[0]


async def _latest_migrations(db: Session, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
    found = await db.rows(_LATEST, _uuids(agent_ids))
    return {event.agent_id: event for event in (agent_event(restored_row(row)) for row in found)}


class PostgresCheckReads(PostgresReads):
    async def page(self, agent_id: str, *, limit: int, before: str | None = None) -> list[CheckRecord]:
        if before is not None and as_uuid(before) is None:
            return []
        page = await self._rows(
            f"{_CHECKS} AND id < $2::uuid ORDER BY id DESC LIMIT $3",
            as_uuid(agent_id),
            before or HIGHEST_UUID,
            limit,
        )
        return [_check(row) for row in page]

    async def last(self, agent_id: str, url: str, protocol: str) -> CheckRecord | None:
        row = await self._first(
            f"{_CHECKS} AND url = $2 AND protocol = $3 ORDER BY id DESC LIMIT 1",
            as_uuid(agent_id),
            url,
            protocol,
        )
        return None if row is None else _check(row)

    async def last_grades(self, agent_ids: Collection[str]) -> dict[str, Grade]:
        found = await self._rows(_GRADES, _uuids(agent_ids))
        return {row[0]: grade_of_check(row[1:]) for row in found}


class PostgresCheckWrites(PostgresWrites):
    __slots__ = ()

    async def put(self, check: CheckRecord, keep: int) -> CheckRecord | None:
        before = await self._db.first(
            f"{_CHECKS} AND url = $2 AND protocol = $3 AND active = $4 ORDER BY id DESC LIMIT 1",
            check.agent_id,
            check.url,
            check.protocol,
            int(check.active),
        )
        await self._db.execute(_PUT_CHECK, *check_values(check))
        await self._db.execute(_DROP_CHECKS, [check.agent_id], keep)
        return None if before is None else _check(before)


class PostgresComparisonReads(PostgresReads):
    async def page(
        self, agent_id: str, *, limit: int, before: str | None = None, verdict: str | None = None
    ) -> list[ComparisonRecord]:
        if before is not None and as_uuid(before) is None:
            return []
        page = await self._rows(
            f"{_COMPARISONS} AND id < $2::uuid AND ($3::text IS NULL OR verdict = $3) ORDER BY id DESC LIMIT $4",
            as_uuid(agent_id),
            before or HIGHEST_UUID,
            verdict,
            limit,
        )
        return [comparison_record(restored_row(row)) for row in page]

    async def counts(self, agent_id: str, since: int) -> dict[str, int]:
        found = await self._rows(
            "SELECT verdict, count(*) FROM comparisons WHERE agent_id = $1 AND since = $2 GROUP BY verdict",
            as_uuid(agent_id),
            since,
        )
        return {row[0]: row[1] for row in found}

    async def calls(self, agent_id: str) -> dict[EndpointName, bytes]:
        found = await self._rows("SELECT side, calls FROM agent_sides WHERE agent_id = $1", as_uuid(agent_id))
        return {side: calls for side, calls in found if calls}


class PostgresComparisonWrites(PostgresWrites):
    __slots__ = ()

    async def put(self, comparisons: Sequence[ComparisonRecord], keep: int) -> None:
        rows = [comparison_values(each) for each in comparisons]
        await self._db.execute(_PUT_COMPARISONS, *columns(rows, 8))
        await self._db.execute(_DROP_COMPARISONS, sorted({each.agent_id for each in comparisons}), keep)

    async def lock_calls(self, agent_ids: Collection[str]) -> dict[tuple[str, EndpointName], bytes]:
        wanted = _uuids(agent_ids)
        await self._db.execute(_MAKE_SIDES, wanted, list(_SIDES))
        found = await self._db.rows(_LOCK_SIDES, wanted)
        return {(agent_id, side): calls for agent_id, side, calls in found if calls}

    async def put_calls(self, calls: Mapping[tuple[str, EndpointName], bytes]) -> None:
        rows = sorted((agent_id, side, value) for (agent_id, side), value in calls.items())
        await self._db.execute(_PUT_SIDES, *columns(rows, 3))

    async def delete_calls(self, agent_id: str) -> None:
        await self._db.execute("DELETE FROM agent_sides WHERE agent_id = $1", as_uuid(agent_id))


def _uuids(ids: Collection[str]) -> list[str]:
    return sorted(each for each in ids if as_uuid(each) is not None)


def _check(row: Row) -> CheckRecord:
    return check_record(restored_row(row))
