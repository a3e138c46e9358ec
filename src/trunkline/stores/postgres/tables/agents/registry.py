"""Agents, and how much they have to do."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import asyncpg

from trunkline.agents import Agent
from trunkline.agents.call_limits.limit_state import INITIAL_STATE
from trunkline.errors import AlreadyExists
from trunkline.stores.agent_limits import after_calls
from trunkline.stores.port.agents.registry import AgentLoad, BreakerChange, RecordedCallEnd
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.text_encoding import (
    as_uuid,
    escaped,
    json_accepted,
    json_restored,
    restored,
    restored_row,
)
from trunkline.stores.postgres.tables.agents.agent_limits import lock_states, read_states, write_states
from trunkline.stores.rows import Row, Value
from trunkline.stores.rows.agents import agent_record, agent_values, keeps_limits, protocol_config_text

_SELECT = """
    SELECT name, url, description, protocol, protocol_config::text, auth_type, secret, timeout_ms, retry,
        max_concurrency, pool, dialect, options, version, created_at, updated_at, publish, id::text
    FROM agents
"""
_INSERT = """
    INSERT INTO agents (name, url, description, protocol, protocol_config, auth_type, secret, timeout_ms, retry,
        max_concurrency, pool, dialect, options, version, created_at, updated_at, publish, id)
    VALUES ($1, $2, $3, $4, $5::text::jsonb, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
"""
_UPDATE = """
    UPDATE agents SET
        name = $1, url = $2, description = $3, protocol = $4, protocol_config = $5::text::jsonb, auth_type = $6,
        secret = $7, timeout_ms = $8, retry = $9, max_concurrency = $10, pool = $11, dialect = $12, options = $13,
        version = $14, created_at = $15, updated_at = $16, publish = $17
    WHERE id = $18 AND version = $19
"""
# The state of an agent belongs to its name, URL and options.
_IDENTITY = "SELECT name, url, options FROM agents WHERE id = $1 AND version = $2"
_FORGET = "DELETE FROM agent_states WHERE agent = $1"
_FORGET_DELETED = "DELETE FROM agent_states WHERE agent = (SELECT name FROM agents WHERE id = $1)"
_HISTORY_TABLES = ("agent_checks", "agent_sides", "comparisons")
# In the words of the indexes of queued and of busy tasks.
_LOADS = """
    SELECT wanted.agent,
        (SELECT count(*) FROM tasks WHERE status IN ('claimed', 'remote') AND tasks.agent = wanted.agent),
        (SELECT count(*) FROM tasks WHERE status = 'queued' AND tasks.agent = wanted.agent)
    FROM unnest($1::text[]) AS wanted(agent)
"""
# By the bytes of their names, as everywhere.
_POOLS = 'SELECT DISTINCT pool COLLATE "C" AS pool FROM agents WHERE pool IS NOT NULL ORDER BY pool LIMIT $1'


class PostgresAgentReads(PostgresReads):
    async def get(self, name_or_id: str) -> Agent | None:
        row = await self._first(
            f"{_SELECT} WHERE name = $1 OR id = $2 ORDER BY name = $1 DESC LIMIT 1",
            name_or_id,
            as_uuid(name_or_id),
        )
        return None if row is None else _agent(row)

    async def page(
        self,
        *,
        limit: int,
        after: str | None = None,
        protocol: str | None = None,
        published: bool = False,
    ) -> list[Agent]:
        # In the words of the index of published agents.
        condition = " AND publish IS NOT NULL" if published else ""
        page = await self._rows(
            f"{_SELECT} WHERE name > $1 AND ($2::text IS NULL OR protocol = $2){condition} ORDER BY name LIMIT $3",
            after or "",
            protocol,
            limit,
        )
        return [_agent(row) for row in page]

    async def known(self, names: Collection[str]) -> set[str]:
        stored = [escaped(name) for name in names]
        async with self._pool.reader() as db:
            found = await db.rows("SELECT name FROM agents WHERE name = ANY($1::text[])", stored)
        return {restored(row[0]) for row in found}

    async def load(self, name: str) -> AgentLoad:
        return (await self.loads([name]))[name]

    async def loads(self, agents: Collection[str]) -> dict[str, AgentLoad]:
        names = sorted(agents)
        async with self._pool.reader() as db:
            now = await self._clock.now(db)
            states = await read_states(db, names)
            found = await db.rows(_LOADS, names)
        return {
            (name := restored(row[0])): AgentLoad(
                at=now, in_flight=row[1], queued=row[2], state=states.get(name, INITIAL_STATE)
            )
            for row in found
        }

    async def pools(self, *, limit: int) -> list[str]:
        return [restored(row[0]) for row in await self._rows(_POOLS, limit)]


class PostgresAgentWrites(PostgresWrites):
    __slots__ = ()

    async def insert(self, agent: Agent) -> None:
        try:
            await self._db.execute(_INSERT, *_values(agent))
        except asyncpg.UniqueViolationError as exc:
            raise _taken(agent) from exc

    async def update(self, agent: Agent, expected_version: int) -> bool:
        if as_uuid(agent.id) is None:
            return False
        row = await self._db.first(_IDENTITY, agent.id, expected_version)
        before = None if row is None else restored_row(row)
        try:
            if before is not None and not keeps_limits(before, agent):
                await self._db.execute(_FORGET, before[0])
            return await self._db.execute(_UPDATE, *_values(agent), expected_version) == 1
        except asyncpg.UniqueViolationError as exc:
            raise _taken(agent) from exc

    async def delete(self, agent_id: str) -> bool:
        for table in _HISTORY_TABLES:
            await self._db.execute(f"DELETE FROM {table} WHERE agent_id = $1", as_uuid(agent_id))  # noqa: S608 - constants only
        await self._db.execute(_FORGET_DELETED, as_uuid(agent_id))
        return await self._db.execute("DELETE FROM agents WHERE id = $1", as_uuid(agent_id)) == 1

    async def reset_limits(self, name: str) -> None:
        await self._db.execute("DELETE FROM agent_states WHERE agent = $1", name)

    async def record_calls(self, calls: Sequence[RecordedCallEnd]) -> list[BreakerChange]:
        agents = sorted({call.agent for call in calls})
        # Nearly always a call has succeeded, which changes nothing: then no bridge waits for another.
        seen, _ = after_calls(await read_states(self._db, agents), calls, self._now)
        if not seen:
            return []
        states = await lock_states(self._db, sorted(seen))
        changed, breaker_changes = after_calls(
            states, [call for call in calls if call.agent in seen], self._now
        )
        await write_states(self._db, changed)
        return breaker_changes


def _agent(row: Row) -> Agent:
    columns = [*restored_row(row)]
    config = columns[_CONFIG]
    columns[_CONFIG] = None if config is None else json_restored(config)
    return agent_record(columns)


# The place of `protocol_config`.
_CONFIG = 4


def _values(agent: Agent) -> tuple[Value, ...]:
    config = protocol_config_text(agent)
    return agent_values(agent, None if config is None else json_accepted(config))


def _taken(agent: Agent) -> AlreadyExists:
    return AlreadyExists(f"An agent named {agent.name!r} already exists.")
