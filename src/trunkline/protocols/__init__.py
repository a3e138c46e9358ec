"""Dialects: how a task becomes a request and an answer an outcome. No I/O here."""

from trunkline.protocols.a2a_v03 import JsonRpc2Adapter
from trunkline.protocols.base import (
    AgentAnswer,
    AgentRequest,
    Direction,
    Failed,
    Interrupted,
    Outcome,
    ProtocolAdapter,
    ProtocolTranslationError,
    PushTarget,
    StreamNews,
    StreamReading,
    Succeeded,
    Wishes,
    Working,
    failure_of,
)
from trunkline.protocols.factory import ProtocolAdapterFactory, UnsupportedProtocol, validate_protocol_config
from trunkline.protocols.negotiate import CardFetch, Negotiated, Unclear, card_urls, negotiate, next_card_url
from trunkline.protocols.simple_a2a import SimpleA2AAdapter

__all__ = [
    "AgentAnswer",
    "AgentRequest",
    "CardFetch",
    "Direction",
    "Failed",
    "Interrupted",
    "JsonRpc2Adapter",
    "Negotiated",
    "Outcome",
    "ProtocolAdapter",
    "ProtocolAdapterFactory",
    "ProtocolTranslationError",
    "PushTarget",
    "SimpleA2AAdapter",
    "StreamNews",
    "StreamReading",
    "Succeeded",
    "Unclear",
    "UnsupportedProtocol",
    "Wishes",
    "Working",
    "card_urls",
    "failure_of",
    "negotiate",
    "next_card_url",
    "validate_protocol_config",
]
