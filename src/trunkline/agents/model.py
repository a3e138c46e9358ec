"""An agent as the registry knows it."""

from __future__ import annotations

from typing import Literal

import msgspec

from trunkline.clock import Instant
from trunkline.jsontypes import JsonObject
from trunkline.policies import RetryPolicy

AuthType = Literal["none", "bearer", "api_key", "basic", "headers"]
AUTO = "auto"


class Dialect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent speaks in fact, and how we know."""

    protocol: str
    url: str
    evidence: str
    decided_at: Instant
    card_etag: str | None = None


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


# The seeds' name for it.
AgentMetadata = Agent
