"""The latest work of agents: sums for every minute, and how the last calls have ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trunkline.clock import Instant
from trunkline.stores.port.agents.activity import AgentMinute, CallPosition, EndedCall, minute_of
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.session import Session
from trunkline.stores.postgres.database.text_encoding import restored, restored_row
from trunkline.stores.postgres.tables.deferred_writes import DeferredWrites
from trunkline.stores.rows.agents import agent_minute, agent_minute_values, ended_call

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
_LAST = CallPosition(Instant(2**63 - 1), 2**63 - 1)


class PostgresActivityReads(PostgresReads):
    async def minutes(self, since: int, agents: Collection[str]) -> list[AgentMinute]:
        return [agent_minute(restored_row(row)) for row in await self._rows(_MINUTES, since, sorted(agents))]

    async def calls(self, agent: str, *, limit: int, before: CallPosition | None = None) -> list[EndedCall]:
        place = before or _LAST
        found = await self._rows(_CALLS, agent, limit, place.ended_at, place.row)
        return [ended_call(restored_row(row)[1:]) for row in found]

    async def last_calls(self, agents: Collection[str]) -> dict[str, EndedCall]:
        found = await self._rows(_LAST_CALLS, sorted(agents))
        return {restored(row[0]): ended_call(restored_row(row)[1:]) for row in found}


class PostgresActivityWrites(PostgresWrites):
    __slots__ = ("_deferred",)

    def __init__(self, db: Session, now: Instant, deferred: DeferredWrites) -> None:
        super().__init__(db, now)
        self._deferred = deferred

    async def record(self, bridge: str, minutes: Sequence[AgentMinute]) -> None:
        self._deferred.minutes += [agent_minute_values(bridge, each) for each in minutes]

    async def forget(self, before: Instant) -> None:
        await self._db.execute("DELETE FROM agent_minutes WHERE minute < $1", minute_of(before))
