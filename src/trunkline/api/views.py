"""
What the API shows of agents and runs, as JSON text.

Payloads were encoded when they were stored; they are spliced in as they are, never decoded here. `schemas`
describes the same shapes for OpenAPI, and the tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from trunkline.agents import Agent, Dialect, RateLimit
from trunkline.api.limit_views import limits_view
from trunkline.clock import rfc3339
from trunkline.jsontypes import JsonObject, encode
from trunkline.services.agents.options import breaker_to_json
from trunkline.services.agents.retry_policy import retry_to_json
from trunkline.stores.base import AgentLoad

if TYPE_CHECKING:
    from trunkline.api.services import HealthReport


def page_json(items: Sequence[object], next_cursor: str | None) -> bytes:
    return encode({"items": items, "next_cursor": next_cursor})


# --- agents


class _Probe(msgspec.Struct):
    at: str
    tried: str
    answered: str


class _Dialect(msgspec.Struct):
    protocol: str
    url: str
    evidence: str
    decided_at: str
    card_url: str | None
    card_etag: str | None
    card_digest: str | None
    streams: bool
    pushes: bool
    tenant: str | None
    tried: list[_Probe]


class _Agent(msgspec.Struct):
    id: str
    name: str
    url: str
    description: str | None
    protocol: str
    protocol_config: JsonObject | None
    auth_type: str
    timeout_ms: int
    retry: JsonObject | None
    max_concurrency: int
    pool: str | None
    transport: str
    resend: str
    endpoint_override: str | None
    allow_card_origin: Sequence[str]
    rate: RateLimit | None
    breaker: JsonObject | None
    repeatable: bool
    dialect: _Dialect | None
    created_at: str
    updated_at: str


def _dialect(dialect: Dialect) -> _Dialect:
    return _Dialect(
        dialect.protocol,
        dialect.url,
        dialect.evidence,
        rfc3339(dialect.decided_at),
        dialect.card_url,
        dialect.card_etag,
        dialect.card_digest,
        dialect.streams,
        dialect.pushes,
        dialect.tenant,
        [_Probe(rfc3339(probe.at), probe.tried, probe.answered) for probe in dialect.tried],
    )


def agent_view(agent: Agent) -> _Agent:
    options = agent.options
    return _Agent(
        agent.id,
        agent.name,
        agent.url,
        agent.description,
        agent.protocol,
        agent.protocol_config,
        agent.auth_type,
        agent.timeout_ms,
        None if agent.retry is None else retry_to_json(agent.retry),
        agent.max_concurrency,
        agent.pool,
        options.transport,
        options.resend,
        options.endpoint_override,
        options.allow_card_origin,
        options.rate,
        breaker_to_json(options.breaker),
        options.repeatable,
        None if agent.dialect is None else _dialect(agent.dialect),
        rfc3339(agent.created_at),
        rfc3339(agent.updated_at),
    )


def agent_json(agent: Agent, load: AgentLoad, migration: object) -> bytes:
    """With what it has to do, how its limits stand, and where it moves to."""
    return encode(
        {
            **msgspec.structs.asdict(agent_view(agent)),
            "limits": limits_view(agent.options, load),
            "migration": migration,
        }
    )


def agents_json(agents: Sequence[Agent], next_cursor: str | None) -> bytes:
    return page_json([agent_view(agent) for agent in agents], next_cursor)


def health_json(report: HealthReport) -> bytes:
    return encode(
        {
            "status": report.status,
            "checked_at": rfc3339(report.checked_at),
            "detail": report.detail,
            "protocol": report.protocol,
            "http_status": report.http_status,
            "duration_ms": report.duration_ms,
        }
    )
