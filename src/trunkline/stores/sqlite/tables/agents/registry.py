"""Agents, and how much they have to do."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import apsw

from trunkline.agents import Agent
from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.jsontypes import encode
from trunkline.stores.agent_limits import after_calls
from trunkline.stores.port.agents.registry import AgentLoad, BreakerChange, RecordedCallEnd
from trunkline.stores.rows.agents import agent_record, agent_values, keeps_limits, protocol_config_text
from trunkline.stores.sqlite.cache import NOT_KNOWN, CacheChanges
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import execute, first, is_duplicate, rows
from trunkline.stores.sqlite.tables.agents.agent_limits import read_state, write_states

_COLUMNS = (
    "name, url, description, protocol, protocol_config, auth_type, secret, timeout_ms, retry,"
    " max_concurrency, pool, dialect, options, version, created_at, updated_at, publish, id"
)
_SELECT = f"SELECT {_COLUMNS} FROM agents"  # noqa: S608 - constants of this module
_INSERT = f"INSERT INTO agents ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
_UPDATE = """
    UPDATE agents SET
        name = ?, url = ?, description = ?, protocol = ?, protocol_config = ?, auth_type = ?, secret = ?,
        timeout_ms = ?, retry = ?, max_concurrency = ?, pool = ?, dialect = ?, options = ?, version = ?,
        created_at = ?, updated_at = ?, publish = ?
    WHERE id = ? AND version = ?
"""
# The state of an agent belongs to its name, URL and options.
_IDENTITY = "SELECT name, url, options FROM agents WHERE id = ? AND version = ?"
_FORGET = "DELETE FROM agent_states WHERE agent = ?"
_FORGET_DELETED = "DELETE FROM agent_states WHERE agent IN (SELECT name FROM agents WHERE id = ?)"
_HISTORY_TABLES = ("agent_checks", "agent_sides", "comparisons")
# In the words of the indexes of queued and of busy tasks.
_LOAD = """
    SELECT (SELECT count(*) FROM tasks WHERE status IN ('claimed', 'remote') AND agent = ?1),
        (SELECT count(*) FROM tasks WHERE status = 'queued' AND agent = ?1)
"""


class SqliteAgentReads(SqliteReads):
    async def get(self, name_or_id: str) -> Agent | None:
        row = first(self._db, f"{_SELECT} WHERE name = ?", (name_or_id,)) or first(
            self._db, f"{_SELECT} WHERE id = ?", (name_or_id,)
        )
        return None if row is None else agent_record(row)

    async def page(
        self,
        *,
        limit: int,
        after: str | None = None,
        protocol: str | None = None,
        published: bool = False,
    ) -> list[Agent]:
        condition, values = "name > ?", [after or ""]
        if published:
            condition += " AND publish IS NOT NULL"
        if protocol is not None:
            condition += " AND protocol = ?"
            values.append(protocol)
        page = rows(self._db, f"{_SELECT} WHERE {condition} ORDER BY name LIMIT ?", (*values, limit))
        return [agent_record(row) for row in page]

    async def known(self, names: Collection[str]) -> set[str]:
        sql = "SELECT name FROM agents WHERE name IN (SELECT value FROM json_each(?))"
        return {row[0] for row in rows(self._db, sql, (encode(list(names)).decode(),))}

    async def load(self, name: str) -> AgentLoad:
        return _load(self._db, name, self._clock.now())

    async def loads(self, agents: Collection[str]) -> dict[str, AgentLoad]:
        now = self._clock.now()
        return {agent: _load(self._db, agent, now) for agent in agents}

    async def pools(self, *, limit: int) -> list[str]:
        sql = "SELECT DISTINCT pool FROM agents WHERE pool IS NOT NULL ORDER BY pool LIMIT ?"
        return [row[0] for row in rows(self._db, sql, (limit,))]


class SqliteAgentWrites(SqliteWrites):
    __slots__ = ("_changes",)

    def __init__(self, db: apsw.Connection, now: Instant, changes: CacheChanges) -> None:
        super().__init__(db, now)
        self._changes = changes

    async def insert(self, agent: Agent) -> None:
        # What waits for a secret may be due from now on.
        self._changes.no_poll_before = NOT_KNOWN
        try:
            execute(self._db, _INSERT, agent_values(agent, protocol_config_text(agent)))
        except apsw.ConstraintError as exc:
            raise _translated(exc, agent) from exc

    async def update(self, agent: Agent, expected_version: int) -> bool:
        self._changes.no_poll_before = NOT_KNOWN
        before = first(self._db, _IDENTITY, (agent.id, expected_version))
        values = agent_values(agent, protocol_config_text(agent))
        try:
            if before is not None and not keeps_limits(before, agent):
                execute(self._db, _FORGET, (before[0],))
            return execute(self._db, _UPDATE, (*values, expected_version)) == 1
        except apsw.ConstraintError as exc:
            raise _translated(exc, agent) from exc

    async def delete(self, agent_id: str) -> bool:
        self._changes.no_poll_before = NOT_KNOWN
        for table in _HISTORY_TABLES:
            execute(self._db, f"DELETE FROM {table} WHERE agent_id = ?", (agent_id,))  # noqa: S608 - constants only
        execute(self._db, _FORGET_DELETED, (agent_id,))
        return execute(self._db, "DELETE FROM agents WHERE id = ?", (agent_id,)) == 1

    async def reset_limits(self, name: str) -> None:
        execute(self._db, "DELETE FROM agent_states WHERE agent = ?", (name,))

    async def record_calls(self, calls: Sequence[RecordedCallEnd]) -> list[BreakerChange]:
        states = {agent: read_state(self._db, agent) for agent in {call.agent for call in calls}}
        changed, breaker_changes = after_calls(states, calls, self._now)
        write_states(self._db, changed)
        return breaker_changes


def _load(db: apsw.Connection, name: str, now: Instant) -> AgentLoad:
    row = first(db, _LOAD, (name,))
    in_flight, queued = row if row is not None else (0, 0)
    return AgentLoad(at=now, in_flight=in_flight, queued=queued, state=read_state(db, name))


def _translated(exc: apsw.ConstraintError, agent: Agent) -> Exception:
    if is_duplicate(exc):
        return AlreadyExists(f"An agent named {agent.name!r} already exists.")
    return exc
