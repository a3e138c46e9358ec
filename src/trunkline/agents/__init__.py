"""Agents: what the registry keeps of them, and the cards they publish."""

from trunkline.agents.model import (
    AUTO,
    NO_OPTIONS,
    Agent,
    AgentMetadata,
    AgentOptions,
    AuthType,
    BreakerPolicy,
    Dialect,
    DialectProbe,
    RateLimit,
    Resend,
    TransportName,
)

__all__ = [
    "AUTO",
    "NO_OPTIONS",
    "Agent",
    "AgentMetadata",
    "AgentOptions",
    "AuthType",
    "BreakerPolicy",
    "Dialect",
    "DialectProbe",
    "RateLimit",
    "Resend",
    "TransportName",
]
