"""The history of agents: their events, their checks, and what is recorded while an agent migrates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import apsw

from trunkline.agents.migration.routing import EndpointName
from trunkline.stores.port.agents.agent_events import (
    AgentEvent,
    CheckRecord,
    ComparisonRecord,
    Grade,
    NewAgentEvent,
)
from trunkline.stores.rows.agents import (
    agent_event,
    agent_event_values,
    check_record,
    check_values,
    comparison_record,
    comparison_values,
    grade_of_check,
)
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import execute, execute_many, first, query_many, rows

_EVENT = "id, agent_id, agent, kind, at, who, why, data"
_EVENTS = f"SELECT {_EVENT} FROM agent_events"  # noqa: S608 - constants of this module
_PUT_EVENT = f"INSERT INTO agent_events({_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
_CHECK = "id, agent_id, at, url, protocol, active, grade, passed, report"
_CHECKS = f"SELECT {_CHECK} FROM agent_checks WHERE agent_id = ?1"  # noqa: S608 - as above
_PUT_CHECK = f"INSERT INTO agent_checks({_CHECK}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
_GRADES = """
    SELECT agent_id, id, at, grade, passed FROM agent_checks WHERE agent_id = ? ORDER BY id DESC LIMIT 1
"""
_COMPARISON = "id, agent_id, since, run_id, step, at, verdict, record"
_COMPARISONS = f"SELECT {_COMPARISON} FROM comparisons WHERE agent_id = ?1"  # noqa: S608 - as above
_PUT_COMPARISON = f"INSERT INTO comparisons({_COMPARISON}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
# All but the last `?2` of an agent.
_DROP = """
    DELETE FROM {table} WHERE agent_id = ?1 AND id <=
        (SELECT id FROM {table} WHERE agent_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)
"""
_DROP_CHECKS = _DROP.format(table="agent_checks")
_DROP_COMPARISONS = _DROP.format(table="comparisons")
_CALLS = "SELECT agent_id, side, calls FROM agent_sides WHERE agent_id = ?"


class SqliteAgentEventReads(SqliteReads):
    async def last_id(self) -> int:
        return _last_id(self._db)

    async def latest_migrations(self, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
        return _latest_migrations(self._db, agent_ids)

    async def migrations_since(self, after: int) -> list[AgentEvent]:
        found = rows(self._db, f"{_EVENTS} WHERE kind = 'migration' AND id > ? ORDER BY id", (after,))
        return [agent_event(row) for row in found]

    async def page(
        self,
        *,
        limit: int,
        before: int | None = None,
        agent_id: str | None = None,
        agent: str | None = None,
    ) -> list[AgentEvent]:
        condition = "(?1 IS NULL OR id < ?1)"
        values: list[str | int | None] = [before, limit]
        for column, value in (("agent_id", agent_id), ("agent", agent)):
            if value is not None:
                values.append(value)
                condition += f" AND {column} = ?{len(values)}"
        page = rows(self._db, f"{_EVENTS} WHERE {condition} ORDER BY id DESC LIMIT ?2", values)
        return [agent_event(row) for row in page]


class SqliteAgentEventWrites(SqliteWrites):
    __slots__ = ()

    async def lock(self) -> None:
        """SQLite has a single writer."""

    async def last_id(self) -> int:
        return _last_id(self._db)

    async def latest_migrations(self, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
        return _latest_migrations(self._db, agent_ids)

    async def put(self, events: Sequence[NewAgentEvent]) -> list[AgentEvent]:
        last = _last_id(self._db)
        numbered = [event.numbered(last + place, self._now) for place, event in enumerate(events, start=1)]
        execute_many(self._db, _PUT_EVENT, [agent_event_values(event) for event in numbered])
        return numbered


def _last_id(db: apsw.Connection) -> int:
    row = first(db, "SELECT coalesce(max(id), 0) FROM agent_events")
    return 0 if row is None else row[0]


def _latest_migrations(db: apsw.Connection, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
    found = query_many(
        db,
        f"{_EVENTS} WHERE agent_id = ? AND kind = 'migration' ORDER BY id DESC LIMIT 1",
        [(agent_id,) for agent_id in agent_ids],
    )
    return {event.agent_id: event for event in map(agent_event, found)}


class SqliteCheckReads(SqliteReads):
    async def page(self, agent_id: str, *, limit: int, before: str | None = None) -> list[CheckRecord]:
        page = rows(
            self._db,
            f"{_CHECKS} AND (?2 IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3",
            (agent_id, before, limit),
        )
        return [check_record(row) for row in page]

    async def last(self, agent_id: str, url: str, protocol: str) -> CheckRecord | None:
        row = first(
            self._db,
            f"{_CHECKS} AND url = ?2 AND protocol = ?3 ORDER BY id DESC LIMIT 1",
            (agent_id, url, protocol),
        )
        return None if row is None else check_record(row)

    async def last_grades(self, agent_ids: Collection[str]) -> dict[str, Grade]:
        found = query_many(self._db, _GRADES, [(agent_id,) for agent_id in agent_ids])
        return {row[0]: grade_of_check(row[1:]) for row in found}


class SqliteCheckWrites(SqliteWrites):
    __slots__ = ()

    async def put(self, check: CheckRecord, keep: int) -> CheckRecord | None:
        before = first(
            self._db,
            f"{_CHECKS} AND url = ?2 AND protocol = ?3 AND active = ?4 ORDER BY id DESC LIMIT 1",
            (check.agent_id, check.url, check.protocol, int(check.active)),
        )
        execute(self._db, _PUT_CHECK, check_values(check))
        execute(self._db, _DROP_CHECKS, (check.agent_id, keep))
        return None if before is None else check_record(before)


class SqliteComparisonReads(SqliteReads):
    async def page(
        self, agent_id: str, *, limit: int, before: str | None = None, verdict: str | None = None
    ) -> list[ComparisonRecord]:
        page = rows(
            self._db,
            f"{_COMPARISONS} AND (?2 IS NULL OR id < ?2) AND (?3 IS NULL OR verdict = ?3) ORDER BY id DESC LIMIT ?4",
            (agent_id, before, verdict, limit),
        )
        return [comparison_record(row) for row in page]

    async def counts(self, agent_id: str, since: int) -> dict[str, int]:
        sql = "SELECT verdict, count(*) FROM comparisons WHERE agent_id = ? AND since = ? GROUP BY verdict"
        return dict(rows(self._db, sql, (agent_id, since)))

    async def calls(self, agent_id: str) -> dict[EndpointName, bytes]:
        return {side: calls for _, side, calls in rows(self._db, _CALLS, (agent_id,))}


class SqliteComparisonWrites(SqliteWrites):
    __slots__ = ()

    async def put(self, comparisons: Sequence[ComparisonRecord], keep: int) -> None:
        execute_many(self._db, _PUT_COMPARISON, [comparison_values(each) for each in comparisons])
        agents = {each.agent_id for each in comparisons}
        execute_many(self._db, _DROP_COMPARISONS, [(agent_id, keep) for agent_id in agents])

    async def lock_calls(self, agent_ids: Collection[str]) -> dict[tuple[str, EndpointName], bytes]:
        found = query_many(self._db, _CALLS, [(agent_id,) for agent_id in agent_ids])
        return {(agent_id, side): calls for agent_id, side, calls in found}

    async def put_calls(self, calls: Mapping[tuple[str, EndpointName], bytes]) -> None:
        execute_many(
            self._db,
            "INSERT OR REPLACE INTO agent_sides(agent_id, side, calls) VALUES (?, ?, ?)",
            [(agent_id, side, value) for (agent_id, side), value in calls.items()],
        )

    async def delete_calls(self, agent_id: str) -> None:
        execute(self._db, "DELETE FROM agent_sides WHERE agent_id = ?", (agent_id,))
