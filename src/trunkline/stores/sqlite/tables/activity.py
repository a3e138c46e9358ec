"""What agents had to do lately: minutes, the last calls, and what a list of agents shows of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import apsw

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.port.activity import AgentMinute, CallPlace, EndedCall, Grade, minute_of, step_of
from trunkline.stores.sqlite.database.statements import Row, execute, execute_many, query_many, rows

_NOTE = """
    INSERT INTO agent_minutes(agent, minute, bridge, calls, failures, total_ms, longest_ms)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (agent, minute, bridge) DO UPDATE SET
        calls = calls + excluded.calls, failures = failures + excluded.failures,
        total_ms = total_ms + excluded.total_ms, longest_ms = max(longest_ms, excluded.longest_ms)
"""
_MINUTES = """
    SELECT agent, minute, sum(calls), sum(failures), sum(total_ms), max(longest_ms) FROM agent_minutes
    WHERE agent = ? AND minute >= ? GROUP BY minute ORDER BY minute
"""
_CALLS = """
    SELECT agent, id, task_id, attempt, called_at, ended_at, outcome, error_code FROM tasks
    WHERE agent = ?1 AND ended_at IS NOT NULL
"""
_GRADES = """
    SELECT agent_id, id, at, grade, passed FROM agent_checks WHERE agent_id = ? ORDER BY id DESC LIMIT 1
"""


def note_activity(db: apsw.Connection, bridge: str, minutes: Sequence[AgentMinute]) -> None:
    execute_many(
        db,
        _NOTE,
        [
            (each.agent, each.minute, bridge, each.calls, each.failures, each.total_ms, each.longest_ms)
            for each in minutes
        ],
    )


def forget_activity(db: apsw.Connection, before: Instant) -> None:
    execute(db, "DELETE FROM agent_minutes WHERE minute < ?", (minute_of(before),))


def agent_minutes(db: apsw.Connection, since: int, agents: Collection[str]) -> list[AgentMinute]:
    found = query_many(db, _MINUTES, [(agent, since) for agent in agents])
    return [
        AgentMinute(
            agent=agent,
            minute=minute,
            calls=calls,
            failures=failures,
            total_ms=total_ms,
            longest_ms=longest_ms,
        )
        for agent, minute, calls, failures, total_ms, longest_ms in found
    ]


def agent_calls(db: apsw.Connection, agent: str, *, limit: int, before: CallPlace | None) -> list[EndedCall]:
    after_it = "" if before is None else "AND (ended_at, id) < (?3, ?4)"
    values = (agent, limit) if before is None else (agent, limit, before.ended_at, before.row)
    page = rows(db, f"{_CALLS} {after_it} ORDER BY ended_at DESC, id DESC LIMIT ?2", values)
    return [_call(row) for row in page]


def last_calls(db: apsw.Connection, agents: Collection[str]) -> dict[str, EndedCall]:
    found = query_many(
        db, f"{_CALLS} ORDER BY ended_at DESC, id DESC LIMIT 1", [(agent,) for agent in agents]
    )
    return {row[0]: _call(row) for row in found}


def last_grades(db: apsw.Connection, agent_ids: Collection[str]) -> dict[str, Grade]:
    found = query_many(db, _GRADES, [(agent_id,) for agent_id in agent_ids])
    return {
        agent_id: Grade(check_id=check_id, at=Instant(at), grade=grade, passed=bool(passed))
        for agent_id, check_id, at, grade, passed in found
    }


def _call(row: Row) -> EndedCall:
    _, number, task_id, attempt, called_at, ended_at, outcome, error_code = row
    return EndedCall(
        row=number,
        run_id=RunId(task_id.partition("/")[0]),
        step=step_of(task_id),
        attempt=attempt,
        called_at=called_at,
        ended_at=ended_at,
        outcome=outcome,
        error_code=error_code,
    )
