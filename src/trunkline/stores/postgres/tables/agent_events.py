"""What has happened to agents, and how they were checked and compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.port.agent_events import AgentEvent, CheckRecord, ComparisonRecord, NewAgentEvent, Side
from trunkline.stores.postgres.database.session import Row, Session, Value, columns
from trunkline.stores.postgres.database.text_encoding import HIGHEST_UUID, as_uuid, restored

# Whoever adds an event waits for the one before to be seen by all; readers go on.
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
_SIDES: tuple[Side, ...] = ("new", "old")


async def lock_agent_events(db: Session) -> None:
    await db.command(_LOCK)


async def last_agent_event(db: Session) -> int:
    row = await db.first("SELECT coalesce(max(id), 0) FROM agent_events")
    return 0 if row is None else row[0]


async def latest_migrations(db: Session, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
    found = await db.rows(_LATEST, _uuids(agent_ids))
    return {event.agent_id: event for event in map(_event, found)}


async def put_agent_events(db: Session, events: Sequence[NewAgentEvent], now: Instant) -> list[AgentEvent]:
    await lock_agent_events(db)
    last = await last_agent_event(db)
    numbered = [event.numbered(last + place, now) for place, event in enumerate(events, start=1)]
    rows = [
        (event.id, event.agent_id, event.agent, event.kind, event.at, event.who, event.why, event.data)
        for event in numbered
    ]
    await db.execute(_PUT_EVENTS, *columns(rows, 8))
    return numbered


async def migrations_since(db: Session, after: int) -> list[AgentEvent]:
    found = await db.rows(f"{_EVENTS} WHERE kind = 'migration' AND id > $1 ORDER BY id", after)
    return [_event(row) for row in found]


async def agent_events(
    db: Session, *, limit: int, before: int | None, agent_id: str | None, agent: str | None
) -> list[AgentEvent]:
    condition = "($1::bigint IS NULL OR id < $1)"
    values: list[Value] = [before, limit]
    if agent_id is not None:
        values.append(as_uuid(agent_id))
        condition += f" AND agent_id = ${len(values)}"
    if agent is not None:
        values.append(agent)
        condition += f" AND agent = ${len(values)}"
    page = await db.rows(f"{_EVENTS} WHERE {condition} ORDER BY id DESC LIMIT $2", *values)
    return [_event(row) for row in page]


async def put_check(db: Session, check: CheckRecord, keep: int) -> CheckRecord | None:
    before = await db.first(
        f"{_CHECKS} AND url = $2 AND protocol = $3 AND active = $4 ORDER BY id DESC LIMIT 1",
        check.agent_id,
        check.url,
        check.protocol,
        int(check.active),
    )
    await db.execute(
        _PUT_CHECK,
        check.id,
        check.agent_id,
        check.at,
        check.url,
        check.protocol,
        int(check.active),
        check.grade,
        int(check.passed),
        check.report,
    )
    await db.execute(_DROP_CHECKS, [check.agent_id], keep)
    return None if before is None else _check(before)


async def checks(db: Session, agent_id: str, *, limit: int, before: str | None) -> list[CheckRecord]:
    if before is not None and as_uuid(before) is None:
        return []
    page = await db.rows(
        f"{_CHECKS} AND id < $2::uuid ORDER BY id DESC LIMIT $3",
        as_uuid(agent_id),
        before or HIGHEST_UUID,
        limit,
    )
    return [_check(row) for row in page]


async def last_check(db: Session, agent_id: str, url: str, protocol: str) -> CheckRecord | None:
    row = await db.first(
        f"{_CHECKS} AND url = $2 AND protocol = $3 ORDER BY id DESC LIMIT 1", as_uuid(agent_id), url, protocol
    )
    return None if row is None else _check(row)


async def put_comparisons(db: Session, comparisons: Sequence[ComparisonRecord], keep: int) -> None:
    rows = [
        (each.id, each.agent_id, each.since, each.run_id, each.step, each.at, each.verdict, each.record)
        for each in comparisons
    ]
    await db.execute(_PUT_COMPARISONS, *columns(rows, 8))
    await db.execute(_DROP_COMPARISONS, sorted({each.agent_id for each in comparisons}), keep)


async def comparisons(
    db: Session, agent_id: str, *, limit: int, before: str | None, verdict: str | None
) -> list[ComparisonRecord]:
    if before is not None and as_uuid(before) is None:
        return []
    page = await db.rows(
        f"{_COMPARISONS} AND id < $2::uuid AND ($3::text IS NULL OR verdict = $3) ORDER BY id DESC LIMIT $4",
        as_uuid(agent_id),
        before or HIGHEST_UUID,
        verdict,
        limit,
    )
    return [_comparison(row) for row in page]


async def comparison_counts(db: Session, agent_id: str, since: int) -> dict[str, int]:
    found = await db.rows(
        "SELECT verdict, count(*) FROM comparisons WHERE agent_id = $1 AND since = $2 GROUP BY verdict",
        as_uuid(agent_id),
        since,
    )
    return {row[0]: row[1] for row in found}


async def side_calls(db: Session, agent_ids: Collection[str]) -> dict[tuple[str, Side], bytes]:
    wanted = _uuids(agent_ids)
    await db.execute(_MAKE_SIDES, wanted, list(_SIDES))
    found = await db.rows(_LOCK_SIDES, wanted)
    return {(agent_id, side): calls for agent_id, side, calls in found if calls}


async def put_side_calls(db: Session, calls: Mapping[tuple[str, Side], bytes]) -> None:
    rows = sorted((agent_id, side, value) for (agent_id, side), value in calls.items())
    await db.execute(_PUT_SIDES, *columns(rows, 3))


async def forget_sides(db: Session, agent_id: str) -> None:
    await db.execute("DELETE FROM agent_sides WHERE agent_id = $1", as_uuid(agent_id))


async def calls_of_sides(db: Session, agent_id: str) -> dict[Side, bytes]:
    found = await db.rows("SELECT side, calls FROM agent_sides WHERE agent_id = $1", as_uuid(agent_id))
    return {side: calls for side, calls in found if calls}


async def forget_agent(db: Session, agent_id: str) -> None:
    """All but what has happened to it."""
    for table in ("agent_checks", "agent_sides", "comparisons"):
        await db.execute(f"DELETE FROM {table} WHERE agent_id = $1", as_uuid(agent_id))  # noqa: S608 - constants only


async def unfinished_runs_before(db: Session, routes: int) -> int:
    row = await db.first(
        "SELECT count(*) FROM runs WHERE status IN ('PENDING', 'RUNNING', 'WAITING', 'PAUSED') AND routes < $1",
        routes,
    )
    return 0 if row is None else row[0]


def _uuids(ids: Collection[str]) -> list[str]:
    return sorted(each for each in ids if as_uuid(each) is not None)


def _event(row: Row) -> AgentEvent:
    event_id, agent_id, agent, kind, at, who, why, data = row
    return AgentEvent(
        id=event_id,
        agent_id=agent_id,
        agent=restored(agent),
        kind=kind,
        at=Instant(at),
        who=restored(who),
        why=restored(why),
        data=data,
    )


def _check(row: Row) -> CheckRecord:
    check_id, agent_id, at, url, protocol, active, grade, passed, report = row
    return CheckRecord(
        id=check_id,
        agent_id=agent_id,
        at=Instant(at),
        url=restored(url),
        protocol=restored(protocol),
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
        step=restored(step),
        at=Instant(at),
        verdict=verdict,
        record=record,
    )
