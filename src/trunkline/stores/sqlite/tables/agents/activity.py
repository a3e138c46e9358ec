"""The latest work of agents: sums for every minute, and how the last calls have ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trunkline.clock import Instant
from trunkline.stores.port.agents.activity import AgentMinute, CallPosition, EndedCall, minute_of
from trunkline.stores.rows.agents import agent_minute, agent_minute_values, ended_call
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import execute, execute_many, query_many, rows

_RECORD = """
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


class SqliteActivityReads(SqliteReads):
    async def minutes(self, since: int, agents: Collection[str]) -> list[AgentMinute]:
        return [
            agent_minute(row) for row in query_many(self._db, _MINUTES, [(each, since) for each in agents])
        ]

    async def calls(self, agent: str, *, limit: int, before: CallPosition | None = None) -> list[EndedCall]:
        after_it = "" if before is None else "AND (ended_at, id) < (?3, ?4)"
        values = (agent, limit) if before is None else (agent, limit, before.ended_at, before.row)
        page = rows(self._db, f"{_CALLS} {after_it} ORDER BY ended_at DESC, id DESC LIMIT ?2", values)
        return [ended_call(row[1:]) for row in page]

    async def last_calls(self, agents: Collection[str]) -> dict[str, EndedCall]:
        last = f"{_CALLS} ORDER BY ended_at DESC, id DESC LIMIT 1"
        found = query_many(self._db, last, [(agent,) for agent in agents])
        return {row[0]: ended_call(row[1:]) for row in found}


class SqliteActivityWrites(SqliteWrites):
    __slots__ = ()

    async def record(self, bridge: str, minutes: Sequence[AgentMinute]) -> None:
        execute_many(self._db, _RECORD, [agent_minute_values(bridge, each) for each in minutes])

    async def forget(self, before: Instant) -> None:
        execute(self._db, "DELETE FROM agent_minutes WHERE minute < ?", (minute_of(before),))
