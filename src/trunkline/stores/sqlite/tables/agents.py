"""Agents in SQLite: statements over the caller's connection, inside the caller's transaction."""

from __future__ import annotations

from typing import cast

import apsw
import msgspec

from trunkline.agents import NO_OPTIONS, Agent, AgentOptions, Dialect
from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.jsontypes import JsonObject, decode, encode
from trunkline.policies import RetryPolicy
from trunkline.stores.sqlite.database.statements import Row, Value, execute, first, is_duplicate, rows

_COLUMNS = (
    "name, url, description, protocol, protocol_config, auth_type, secret, timeout_ms, retry,"
    " max_concurrency, pool, dialect, options, version, created_at, updated_at, id"
)
_SELECT = f"SELECT {_COLUMNS} FROM agents"  # noqa: S608 - constants of this module
_INSERT = f"INSERT INTO agents ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
_UPDATE = """
    UPDATE agents SET
        name = ?, url = ?, description = ?, protocol = ?, protocol_config = ?, auth_type = ?, secret = ?,
        timeout_ms = ?, retry = ?, max_concurrency = ?, pool = ?, dialect = ?, options = ?, version = ?,
        created_at = ?, updated_at = ?
    WHERE id = ? AND version = ?
"""
# What is known of an agent is known of this name and place.
_FORGET = """
    DELETE FROM agent_states WHERE agent IN (
        SELECT name FROM agents WHERE id = ?1 AND version = ?2 AND (name <> ?3 OR url <> ?4 OR options IS NOT ?5))
"""
_FORGET_DELETED = "DELETE FROM agent_states WHERE agent IN (SELECT name FROM agents WHERE id = ?)"
_retry_policies = msgspec.json.Decoder(RetryPolicy)
_dialects = msgspec.json.Decoder(Dialect)
_options = msgspec.json.Decoder(AgentOptions)


def insert_agent(db: apsw.Connection, agent: Agent) -> None:
    try:
        execute(db, _INSERT, _values(agent))
    except apsw.ConstraintError as exc:
        raise _translated(exc, agent) from exc


def update_agent(db: apsw.Connection, agent: Agent, expected_version: int) -> bool:
    forgotten = (agent.id, expected_version, agent.name, agent.url, _options_text(agent))
    try:
        execute(db, _FORGET, forgotten)
        return execute(db, _UPDATE, (*_values(agent), expected_version)) == 1
    except apsw.ConstraintError as exc:
        raise _translated(exc, agent) from exc


def delete_agent(db: apsw.Connection, agent_id: str) -> bool:
    execute(db, _FORGET_DELETED, (agent_id,))
    return execute(db, "DELETE FROM agents WHERE id = ?", (agent_id,)) == 1


def agent(db: apsw.Connection, name_or_id: str) -> Agent | None:
    """The agent of that name; where there is none, the one with that id."""
    row = first(db, f"{_SELECT} WHERE name = ?", (name_or_id,)) or first(
        db, f"{_SELECT} WHERE id = ?", (name_or_id,)
    )
    return None if row is None else _agent(row)


def agents(
    db: apsw.Connection, *, limit: int, after: str | None = None, protocol: str | None = None
) -> list[Agent]:
    condition, values = "name > ?", [after or ""]
    if protocol is not None:
        condition += " AND protocol = ?"
        values.append(protocol)
    page = rows(db, f"{_SELECT} WHERE {condition} ORDER BY name LIMIT ?", (*values, limit))
    return [_agent(row) for row in page]


def _values(agent: Agent) -> tuple[Value, ...]:
    return (
        agent.name,
        agent.url,
        agent.description,
        agent.protocol,
        _json(agent.protocol_config),
        agent.auth_type,
        agent.secret,
        agent.timeout_ms,
        _json(agent.retry),
        agent.max_concurrency,
        agent.pool,
        _json(agent.dialect),
        _options_text(agent),
        agent.version,
        agent.created_at,
        agent.updated_at,
        agent.id,
    )


def _options_text(agent: Agent) -> str | None:
    return None if agent.options == NO_OPTIONS else _json(agent.options)


def _agent(row: Row) -> Agent:
    (
        name, url, description, protocol, protocol_config, auth_type, secret, timeout_ms, retry,
        max_concurrency, pool, dialect, options, version, created_at, updated_at, agent_id,
    ) = row  # fmt: skip
    return Agent(
        id=agent_id,
        name=name,
        url=url,
        description=description,
        protocol=protocol,
        protocol_config=None if protocol_config is None else cast("JsonObject", decode(protocol_config)),
        auth_type=auth_type,
        secret=secret,
        timeout_ms=timeout_ms,
        retry=None if retry is None else _retry_policies.decode(retry),
        max_concurrency=max_concurrency,
        pool=pool,
        dialect=None if dialect is None else _dialects.decode(dialect),
        options=NO_OPTIONS if options is None else _options.decode(options),
        version=version,
        created_at=Instant(created_at),
        updated_at=Instant(updated_at),
    )


def _json(value: JsonObject | RetryPolicy | Dialect | AgentOptions | None) -> str | None:
    return None if value is None else encode(value).decode()


def _translated(exc: apsw.ConstraintError, agent: Agent) -> Exception:
    if is_duplicate(exc):
        return AlreadyExists(f"There is already an agent named {agent.name!r}.")
    return exc
