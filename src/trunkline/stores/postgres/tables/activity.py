"""What agents had to do lately: minutes, the last calls, and what a list of agents shows of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from trunkline.agents.call_limits.limit_state import INITIAL_STATE
from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.base import AgentLoad
from trunkline.stores.port.activity import AgentMinute, CallPlace, EndedCall, Grade, minute_of, step_of
from trunkline.stores.postgres.database.combined_statements import Part
from trunkline.stores.postgres.database.session import Row, Session, columns
from trunkline.stores.postgres.database.text_encoding import as_uuid, restored, restored_if_any
from trunkline.stores.postgres.tables.agent_limits import states_of

# In the order of the columns below.
NotedMinute: TypeAlias = tuple[str, int, str, int, int, int, int]

# By agent and minute once more: a transaction may note the same ones twice before it writes them.
_NOTE = """
    INSERT INTO agent_minutes(agent, minute, bridge, calls, failures, total_ms, longest_ms)
    SELECT agent, minute, bridge, sum(calls), sum(failures), sum(total_ms), max(longest_ms)
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::int[], $5::int[], $6::bigint[], $7::bigint[])
        AS new(agent, minute, bridge, calls, failures, total_ms, longest_ms)
    GROUP BY agent, minute, bridge
    ON CONFLICT (agent, minute, bridge) DO UPDATE SET
        calls = agent_minutes.calls + excluded.calls, failures = agent_minutes.failures + excluded.failures,
        total_ms = agent_minutes.total_ms + excluded.total_ms,
        longest_ms = greatest(agent_minutes.longest_ms, excluded.longest_ms)
"""
_MINUTES = """
    SELECT agent, minute, sum(calls)::bigint, sum(failures)::bigint, sum(total_ms)::bigint, max(longest_ms)
    FROM agent_minutes WHERE agent = ANY($2::text[]) AND minute >= $1
    GROUP BY agent, minute ORDER BY agent, minute
"""
_COLUMNS = "agent, id, task_id, attempt, called_at, ended_at, outcome, error_code"
_CALLS = f"""
    SELECT {_COLUMNS} FROM tasks
    WHERE agent = $1 AND ended_at IS NOT NULL AND (ended_at, id) < ($3::bigint, $4::bigint)
    ORDER BY ended_at DESC, id DESC LIMIT $2
"""  # noqa: S608 - constants only
_LAST_CALLS = f"""
    SELECT last.* FROM unnest($1::text[]) AS wanted(agent) CROSS JOIN LATERAL (
        SELECT {_COLUMNS} FROM tasks WHERE tasks.agent = wanted.agent AND ended_at IS NOT NULL
        ORDER BY ended_at DESC, id DESC LIMIT 1
    ) AS last
"""  # noqa: S608 - as above
# In the words of the indexes of queued and of busy tasks.
_LOADS = """
    SELECT wanted.agent,
        (SELECT count(*) FROM tasks WHERE status IN ('claimed', 'remote') AND tasks.agent = wanted.agent),
        (SELECT count(*) FROM tasks WHERE status = 'queued' AND tasks.agent = wanted.agent)
    FROM unnest($1::text[]) AS wanted(agent)
"""
_GRADES = """
    SELECT last.* FROM unnest($1::uuid[]) AS wanted(id) CROSS JOIN LATERAL (
        SELECT agent_id::text, id::text, at, grade, passed FROM agent_checks WHERE agent_id = wanted.id
        ORDER BY id DESC LIMIT 1
    ) AS last
"""
_LAST = CallPlace(Instant(2**63 - 1), 2**63 - 1)


def noting(bridge: str, minutes: Sequence[AgentMinute]) -> list[NotedMinute]:
    return [
        (each.agent, each.minute, bridge, each.calls, each.failures, each.total_ms, each.longest_ms)
        for each in minutes
    ]


def note_part(rows: Sequence[NotedMinute]) -> Part:
    return Part(_NOTE, columns(rows, 7))


async def forget_activity(db: Session, before: Instant) -> None:
    await db.execute("DELETE FROM agent_minutes WHERE minute < $1", minute_of(before))


async def agent_minutes(db: Session, since: int, agents: Collection[str]) -> list[AgentMinute]:
    return [
        AgentMinute(
            agent=restored(agent),
            minute=minute,
            calls=calls,
            failures=failures,
            total_ms=total_ms,
            longest_ms=longest_ms,
        )
        for agent, minute, calls, failures, total_ms, longest_ms in await db.rows(
            _MINUTES, since, sorted(agents)
        )
    ]


async def agent_calls(db: Session, agent: str, *, limit: int, before: CallPlace | None) -> list[EndedCall]:
    place = before or _LAST
    return [_call(row) for row in await db.rows(_CALLS, agent, limit, place.ended_at, place.row)]


async def last_calls(db: Session, agents: Collection[str]) -> dict[str, EndedCall]:
    return {restored(row[0]): _call(row) for row in await db.rows(_LAST_CALLS, sorted(agents))}


async def agent_loads(db: Session, agents: Collection[str], now: Instant) -> dict[str, AgentLoad]:
    names = sorted(agents)
    states = await states_of(db, names)
    return {
        (name := restored(row[0])): AgentLoad(
            at=now, in_flight=row[1], queued=row[2], state=states.get(name, INITIAL_STATE)
        )
        for row in await db.rows(_LOADS, names)
    }


async def last_grades(db: Session, agent_ids: Collection[str]) -> dict[str, Grade]:
    known = sorted(each for each in agent_ids if as_uuid(each) is not None)
    return {
        agent_id: Grade(check_id=check_id, at=Instant(at), grade=grade, passed=bool(passed))
        for agent_id, check_id, at, grade, passed in await db.rows(_GRADES, known)
    }


def _call(row: Row) -> EndedCall:
    _, number, stored_id, attempt, called_at, ended_at, outcome, error_code = row
    task_id = restored(stored_id)
    return EndedCall(
        row=number,
        run_id=RunId(task_id.partition("/")[0]),
        step=step_of(task_id),
        attempt=attempt,
        called_at=called_at,
        ended_at=ended_at,
        outcome=outcome,
        error_code=restored_if_any(error_code),
    )
