"""Agents in PostgreSQL."""

from __future__ import annotations

from typing import cast

import asyncpg
import msgspec

from trunkline.agents import NO_OPTIONS, Agent, AgentOptions, Dialect
from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.jsontypes import JsonObject, decode, encode
from trunkline.policies import RetryPolicy
from trunkline.stores.postgres.database.session import Row, Session, Value
from trunkline.stores.postgres.database.text_encoding import (
    as_uuid,
    json_accepted,
    json_restored,
    restored,
    restored_if_any,
)

_SELECT = """
    SELECT name, url, description, protocol, protocol_config::text, auth_type, secret, timeout_ms, retry,
        max_concurrency, pool, dialect, options, version, created_at, updated_at, id::text
    FROM agents
"""
_INSERT = """
    INSERT INTO agents (name, url, description, protocol, protocol_config, auth_type, secret, timeout_ms, retry,
        max_concurrency, pool, dialect, options, version, created_at, updated_at, id)
    VALUES ($1, $2, $3, $4, $5::text::jsonb, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
"""
_UPDATE = """
    UPDATE agents SET
        name = $1, url = $2, description = $3, protocol = $4, protocol_config = $5::text::jsonb, auth_type = $6,
        secret = $7, timeout_ms = $8, retry = $9, max_concurrency = $10, pool = $11, dialect = $12, options = $13,
        version = $14, created_at = $15, updated_at = $16
    WHERE id = $17 AND version = $18
"""
# What is known of an agent is known of this name and place.
_FORGET = """
    DELETE FROM agent_states USING agents WHERE agents.name = agent_states.agent AND agents.id = $1
        AND agents.version = $2 AND (agents.name <> $3 OR agents.url <> $4 OR agents.options IS DISTINCT FROM $5)
"""
_FORGET_DELETED = "DELETE FROM agent_states WHERE agent = (SELECT name FROM agents WHERE id = $1)"
_retry_policies = msgspec.json.Decoder(RetryPolicy)
_dialects = msgspec.json.Decoder(Dialect)
_options = msgspec.json.Decoder(AgentOptions)


async def insert_agent(db: Session, agent: Agent) -> None:
    try:
        await db.execute(_INSERT, *_values(agent))
    except asyncpg.UniqueViolationError as exc:
        raise _taken(agent) from exc


async def update_agent(db: Session, agent: Agent, expected_version: int) -> bool:
    if as_uuid(agent.id) is None:
        return False
    try:
        await db.execute(_FORGET, agent.id, expected_version, agent.name, agent.url, _options_text(agent))
        return await db.execute(_UPDATE, *_values(agent), expected_version) == 1
    except asyncpg.UniqueViolationError as exc:
        raise _taken(agent) from exc


async def delete_agent(db: Session, agent_id: str) -> bool:
    await db.execute(_FORGET_DELETED, as_uuid(agent_id))
    return await db.execute("DELETE FROM agents WHERE id = $1", as_uuid(agent_id)) == 1


async def agent(db: Session, name_or_id: str) -> Agent | None:
    """The agent of that name; where there is none, the one with that id."""
    row = await db.first(
        f"{_SELECT} WHERE name = $1 OR id = $2 ORDER BY name = $1 DESC LIMIT 1",
        name_or_id,
        as_uuid(name_or_id),
    )
    return None if row is None else _agent(row)


async def agents(
    db: Session, *, limit: int, after: str | None = None, protocol: str | None = None
) -> list[Agent]:
    page = await db.rows(
        f"{_SELECT} WHERE name > $1 AND ($2::text IS NULL OR protocol = $2) ORDER BY name LIMIT $3",
        after or "",
        protocol,
        limit,
    )
    return [_agent(row) for row in page]


def _values(agent: Agent) -> tuple[Value, ...]:
    return (
        agent.name,
        agent.url,
        agent.description,
        agent.protocol,
        None if agent.protocol_config is None else json_accepted(encode(agent.protocol_config).decode()),
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
        name=restored(name),
        url=restored(url),
        description=restored_if_any(description),
        protocol=restored(protocol),
        protocol_config=None
        if protocol_config is None
        else cast("JsonObject", decode(json_restored(protocol_config))),
        auth_type=auth_type,
        secret=secret,
        timeout_ms=timeout_ms,
        retry=None if retry is None else _retry_policies.decode(restored(retry)),
        max_concurrency=max_concurrency,
        pool=restored_if_any(pool),
        dialect=None if dialect is None else _dialects.decode(restored(dialect)),
        options=NO_OPTIONS if options is None else _options.decode(restored(options)),
        version=version,
        created_at=Instant(created_at),
        updated_at=Instant(updated_at),
    )


def _json(value: RetryPolicy | Dialect | AgentOptions | None) -> str | None:
    return None if value is None else encode(value).decode()


def _taken(agent: Agent) -> AlreadyExists:
    return AlreadyExists(f"There is already an agent named {agent.name!r}.")
