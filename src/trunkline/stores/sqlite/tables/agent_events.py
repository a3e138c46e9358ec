"""What has happened to agents, and how they were checked and compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import apsw

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.port.agent_events import AgentEvent, CheckRecord, ComparisonRecord, NewAgentEvent, Side
from trunkline.stores.sqlite.database.statements import Row, execute, execute_many, first, query_many, rows
from trunkline.stores.sqlite.tables.runs import UNFINISHED

_EVENT = "id, agent_id, agent, kind, at, who, why, data"
_EVENTS = f"SELECT {_EVENT} FROM agent_events"  # noqa: S608 - constants of this module
_PUT_EVENT = f"INSERT INTO agent_events({_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
_CHECK = "id, agent_id, at, url, protocol, active, grade, passed, report"
_CHECKS = f"SELECT {_CHECK} FROM agent_checks WHERE agent_id = ?1"  # noqa: S608 - as above
_PUT_CHECK = f"INSERT INTO agent_checks({_CHECK}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
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


def last_agent_event(db: apsw.Connection) -> int:
    row = first(db, "SELECT coalesce(max(id), 0) FROM agent_events")
    return 0 if row is None else row[0]


def latest_migrations(db: apsw.Connection, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
    found = query_many(
        db,
        f"{_EVENTS} WHERE agent_id = ? AND kind = 'migration' ORDER BY id DESC LIMIT 1",
        [(agent_id,) for agent_id in agent_ids],
    )
    return {event.agent_id: event for event in map(_event, found)}


def put_agent_events(db: apsw.Connection, events: Sequence[NewAgentEvent], now: Instant) -> list[AgentEvent]:
    last = last_agent_event(db)
    numbered = [event.numbered(last + place, now) for place, event in enumerate(events, start=1)]
    execute_many(
        db,
        _PUT_EVENT,
        [
            (
                event.id,
                event.agent_id,
                event.agent,
                event.kind,
                event.at,
                event.who,
                event.why,
                event.data,
            )
            for event in numbered
        ],
    )
    return numbered


def migrations_since(db: apsw.Connection, after: int) -> list[AgentEvent]:
    return [
        _event(row)
        for row in rows(db, f"{_EVENTS} WHERE kind = 'migration' AND id > ? ORDER BY id", (after,))
    ]


def agent_events(
    db: apsw.Connection, *, limit: int, before: int | None, agent_id: str | None, agent: str | None
) -> list[AgentEvent]:
    condition = "(?1 IS NULL OR id < ?1)"
    values: list[str | int | None] = [before, limit]
    for column, value in (("agent_id", agent_id), ("agent", agent)):
        if value is not None:
            values.append(value)
            condition += f" AND {column} = ?{len(values)}"
    return [_event(row) for row in rows(db, f"{_EVENTS} WHERE {condition} ORDER BY id DESC LIMIT ?2", values)]


def put_check(db: apsw.Connection, check: CheckRecord, keep: int) -> CheckRecord | None:
    before = first(
        db,
        f"{_CHECKS} AND url = ?2 AND protocol = ?3 AND active = ?4 ORDER BY id DESC LIMIT 1",
        (check.agent_id, check.url, check.protocol, int(check.active)),
    )
    execute(
        db,
        _PUT_CHECK,
        (
            check.id,
            check.agent_id,
            check.at,
            check.url,
            check.protocol,
            int(check.active),
            check.grade,
            int(check.passed),
            check.report,
        ),
    )
    execute(db, _DROP_CHECKS, (check.agent_id, keep))
    return None if before is None else _check(before)


def checks(db: apsw.Connection, agent_id: str, *, limit: int, before: str | None) -> list[CheckRecord]:
    page = rows(
        db, f"{_CHECKS} AND (?2 IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3", (agent_id, before, limit)
    )
    return [_check(row) for row in page]


def last_check(db: apsw.Connection, agent_id: str, url: str, protocol: str) -> CheckRecord | None:
    row = first(
        db, f"{_CHECKS} AND url = ?2 AND protocol = ?3 ORDER BY id DESC LIMIT 1", (agent_id, url, protocol)
    )
    return None if row is None else _check(row)


def put_comparisons(db: apsw.Connection, comparisons: Sequence[ComparisonRecord], keep: int) -> None:
    execute_many(
        db,
        _PUT_COMPARISON,
        [
            (
                comparison.id,
                comparison.agent_id,
                comparison.since,
                comparison.run_id,
                comparison.step,
                comparison.at,
                comparison.verdict,
                comparison.record,
            )
            for comparison in comparisons
        ],
    )
    execute_many(
        db, _DROP_COMPARISONS, [(agent_id, keep) for agent_id in {each.agent_id for each in comparisons}]
    )


def comparisons(
    db: apsw.Connection, agent_id: str, *, limit: int, before: str | None, verdict: str | None
) -> list[ComparisonRecord]:
    page = rows(
        db,
        f"{_COMPARISONS} AND (?2 IS NULL OR id < ?2) AND (?3 IS NULL OR verdict = ?3) ORDER BY id DESC LIMIT ?4",
        (agent_id, before, verdict, limit),
    )
    return [_comparison(row) for row in page]


def comparison_counts(db: apsw.Connection, agent_id: str, since: int) -> dict[str, int]:
    sql = "SELECT verdict, count(*) FROM comparisons WHERE agent_id = ? AND since = ? GROUP BY verdict"
    return dict(rows(db, sql, (agent_id, since)))


def side_calls(db: apsw.Connection, agent_ids: Collection[str]) -> dict[tuple[str, Side], bytes]:
    found = query_many(
        db,
        "SELECT agent_id, side, calls FROM agent_sides WHERE agent_id = ?",
        [(agent_id,) for agent_id in agent_ids],
    )
    return {(agent_id, side): calls for agent_id, side, calls in found}


def put_side_calls(db: apsw.Connection, calls: Mapping[tuple[str, Side], bytes]) -> None:
    execute_many(
        db,
        "INSERT OR REPLACE INTO agent_sides(agent_id, side, calls) VALUES (?, ?, ?)",
        [(agent_id, side, value) for (agent_id, side), value in calls.items()],
    )


def forget_sides(db: apsw.Connection, agent_id: str) -> None:
    execute(db, "DELETE FROM agent_sides WHERE agent_id = ?", (agent_id,))


def forget_agent(db: apsw.Connection, agent_id: str) -> None:
    """All but what has happened to it."""
    for table in ("agent_checks", "agent_sides", "comparisons"):
        execute(db, f"DELETE FROM {table} WHERE agent_id = ?", (agent_id,))  # noqa: S608 - constants only


def unfinished_runs_before(db: apsw.Connection, routes: int) -> int:
    row = first(db, f"SELECT count(*) FROM runs WHERE status IN ({UNFINISHED}) AND routes < ?", (routes,))  # noqa: S608 - as above
    return 0 if row is None else row[0]


def _event(row: Row) -> AgentEvent:
    event_id, agent_id, agent, kind, at, who, why, data = row
    return AgentEvent(
        id=event_id, agent_id=agent_id, agent=agent, kind=kind, at=Instant(at), who=who, why=why, data=data
    )


def _check(row: Row) -> CheckRecord:
    check_id, agent_id, at, url, protocol, active, grade, passed, report = row
    return CheckRecord(
        id=check_id,
        agent_id=agent_id,
        at=Instant(at),
        url=url,
        protocol=protocol,
        active=bool(active),
        grade=grade,
        passed=bool(passed),
        report=report,
    )


def _comparison(row: Row) -> ComparisonRecord:
    comparison_id, agent_id, since, run_id, step, at, verdict, record = row
    return ComparisonRecord(
        id=comparison_id,
        agent_id=agent_id,
        since=since,
        run_id=RunId(run_id),
        step=step,
        at=Instant(at),
        verdict=verdict,
        record=record,
    )
