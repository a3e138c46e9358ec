"""An agent as the registry knows it."""

from __future__ import annotations

from typing import Literal

import msgspec

from trunkline.agents.cards import CardDetails
from trunkline.clock import Instant
from trunkline.jsontypes import JsonObject
from trunkline.publish_options import PublishOptions
from trunkline.retry_policy import RetryPolicy

AuthType = Literal["none", "bearer", "api_key", "basic", "headers", "oauth2", "signed", "mtls"]
# What to do when it is not known whether the agent has received a message.
Resend = Literal["same_message", "ask_first", "never"]
# How bytes reach the agent; each transport has its own form of url (`transport_urls`).
TransportName = Literal["https", "aws-agentcore", "stdio"]
AUTO = "auto"


class DialectProbe(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request that was made to determine an agent's dialect, and its result."""

    at: Instant
    # A request line without the query, or a method's name.
    tried: str
    # In words: a status and what it was, an error, no answer.
    answered: str


class Dialect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The dialect that was detected, with the evidence for it."""

    protocol: str
    url: str
    evidence: str
    decided_at: Instant
    card_etag: str | None = None
    card_url: str | None = None
    # Of the card's bytes: a card without an ETag shows by it that it has changed.
    card_digest: str | None = None
    # What the card offers.
    streams: bool = False
    pushes: bool = False
    # A part of every request where one address serves several (A2A 1.0).
    tenant: str | None = None
    # The ids of the skills that the card lists.
    skills: tuple[str, ...] = ()
    # What the card says for other readers; None: there is no card, or it was read by an earlier version.
    details: CardDetails | None = None
    # It was Simple A2A before, which sends the whole input, so messages carry it, too (`input_mode: json`).
    whole_input: bool = False
    tried: tuple[DialectProbe, ...] = ()


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """Maximum calls per second over all bridges, and the burst size."""

    per_second: float
    burst: int = 1


class BreakerPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When the circuit breaker stops calls to an agent, and when it lets them through again."""

    # So many failures in a row, or this share of the last `window` calls.
    failures: int = 5
    rate: float = 0.5
    window: int = 20
    open_ms: int = 30_000
    # Calls let through to see whether it works again.
    probes: int = 1
    # Whether an answer that is a JSON-RPC error counts as a failure.
    jsonrpc_errors: bool = False


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options in addition to the columns of the agents table; stored as one JSON text."""

    # Plain http is carried by `https`, too.
    transport: TransportName = "https"
    resend: Resend = "ask_first"
    # Where to send instead of where the card says.
    endpoint_override: str | None = None
    # Origins that a card may name in addition to the agent's own: `https://host:port`.
    allow_card_origin: tuple[str, ...] = ()
    rate: RateLimit | None = None
    breaker: BreakerPolicy | None = None
    # Whether the same work may be given to it twice.
    repeatable: bool = False
    # Words by which agents are found.
    tags: tuple[str, ...] = ()
    # What it can do; empty: what its card says.
    skills: tuple[str, ...] = ()
    # What a call costs, in whichever unit: steps can choose the cheapest agent.
    cost: float | None = None


NO_OPTIONS = AgentOptions()


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """
    One registered agent.

    `secret` is the encrypted `auth_config`; only the bridge opens it, when it makes a call.
    """

    id: str
    name: str
    url: str
    created_at: Instant
    updated_at: Instant
    version: int = 1
    description: str | None = None
    protocol: str = AUTO
    protocol_config: JsonObject | None = None
    auth_type: AuthType = "none"
    secret: bytes | None = None
    timeout_ms: int = 30_000
    retry: RetryPolicy | None = None
    max_concurrency: int = 100
    pool: str | None = None
    dialect: Dialect | None = None
    options: AgentOptions = NO_OPTIONS
    # How it appears to callers over A2A; None: it is not published.
    publish: PublishOptions | None = None

    @property
    def skills(self) -> tuple[str, ...]:
        """As registered; if nothing is, as its card says."""
        return self.options.skills or (() if self.dialect is None else self.dialect.skills)


# The public name of the model.
AgentMetadata = Agent
