"""Dialects: how a task becomes a request and an answer an outcome. No I/O here."""

from trunkline.protocols.a2a_v01 import A2AV01Adapter
from trunkline.protocols.a2a_v03 import A2AV02Adapter, A2AV03Adapter, JsonRpc2Adapter
from trunkline.protocols.a2a_v1 import A2A10Adapter, A2A10HttpAdapter
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
    Timing,
    Wishes,
    Working,
    failure_of,
)
from trunkline.protocols.factory import ProtocolAdapterFactory, UnsupportedProtocol, validate_protocol_config
from trunkline.protocols.jsonrpc_call import JsonRpcCallAdapter
from trunkline.protocols.negotiate import (
    A2A_DIALECTS,
    CardFetch,
    Negotiated,
    Offer,
    Unclear,
    answer_of,
    card_urls,
    negotiate,
    negotiate_pinned,
    next_card_url,
)
from trunkline.protocols.profiles import InvalidProfile, Profile, find_profile, register_profile
from trunkline.protocols.simple_a2a import SimpleA2AAdapter
from trunkline.protocols.zone_call import ZoneAdapter

__all__ = [
    "A2A_DIALECTS",
    "A2A10Adapter",
    "A2A10HttpAdapter",
    "A2AV01Adapter",
    "A2AV02Adapter",
    "A2AV03Adapter",
    "AgentAnswer",
    "AgentRequest",
    "CardFetch",
    "Direction",
    "Failed",
    "Interrupted",
    "InvalidProfile",
    "JsonRpc2Adapter",
    "JsonRpcCallAdapter",
    "Negotiated",
    "Offer",
    "Outcome",
    "Profile",
    "ProtocolAdapter",
    "ProtocolAdapterFactory",
    "ProtocolTranslationError",
    "PushTarget",
    "SimpleA2AAdapter",
    "StreamNews",
    "StreamReading",
    "Succeeded",
    "Timing",
    "Unclear",
    "UnsupportedProtocol",
    "Wishes",
    "Working",
    "ZoneAdapter",
    "answer_of",
    "card_urls",
    "failure_of",
    "find_profile",
    "negotiate",
    "negotiate_pinned",
    "next_card_url",
    "register_profile",
    "validate_protocol_config",
]
