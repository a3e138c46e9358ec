"""Dialects: how a task becomes a request and an answer an outcome. No I/O here."""

from trunkline.protocols.a2a.v01 import A2AV01Adapter
from trunkline.protocols.a2a.v03 import A2AV02Adapter, A2AV03Adapter, JsonRpc2Adapter
from trunkline.protocols.a2a.v1 import A2A10Adapter, A2A10HttpAdapter
from trunkline.protocols.base import (
    AgentAnswer,
    AgentRequest,
    AnswerTiming,
    Direction,
    Failed,
    Interrupted,
    Outcome,
    ProtocolAdapter,
    ProtocolTranslationError,
    PushTarget,
    SendOptions,
    StreamUpdate,
    Succeeded,
    TaskStreamReader,
    Working,
    failure_of,
)
from trunkline.protocols.factory import ProtocolAdapterFactory, UnsupportedProtocol, validate_protocol_config
from trunkline.protocols.json_rpc.call_adapter import JsonRpcCallAdapter
from trunkline.protocols.negotiate import (
    A2A_DIALECTS,
    CardFetch,
    NegotiatedDialect,
    ProtocolOffer,
    UnclearDialect,
    card_urls,
    describe_fetch,
    negotiate,
    negotiate_pinned,
    next_card_url,
)
from trunkline.protocols.simple_a2a import SimpleA2AAdapter
from trunkline.protocols.zone.adapter import ZoneAdapter
from trunkline.protocols.zone.params_profiles import (
    InvalidProfile,
    ParamsProfile,
    find_profile,
    register_profile,
)

__all__ = [
    "A2A_DIALECTS",
    "A2A10Adapter",
    "A2A10HttpAdapter",
    "A2AV01Adapter",
    "A2AV02Adapter",
    "A2AV03Adapter",
    "AgentAnswer",
    "AgentRequest",
    "AnswerTiming",
    "CardFetch",
    "Direction",
    "Failed",
    "Interrupted",
    "InvalidProfile",
    "JsonRpc2Adapter",
    "JsonRpcCallAdapter",
    "NegotiatedDialect",
    "Outcome",
    "ParamsProfile",
    "ProtocolAdapter",
    "ProtocolAdapterFactory",
    "ProtocolOffer",
    "ProtocolTranslationError",
    "PushTarget",
    "SendOptions",
    "SimpleA2AAdapter",
    "StreamUpdate",
    "Succeeded",
    "TaskStreamReader",
    "UnclearDialect",
    "UnsupportedProtocol",
    "Working",
    "ZoneAdapter",
    "card_urls",
    "describe_fetch",
    "failure_of",
    "find_profile",
    "negotiate",
    "negotiate_pinned",
    "next_card_url",
    "register_profile",
    "validate_protocol_config",
]
