"""
Which dialects there are, by the names that the registry uses.

    "simple-a2a"    {"task_id", "input"}
    "jsonrpc-2.0"   {"jsonrpc", "id", "method": "message/send", "params"}, and no streams; with a `profile`
                    {"jsonrpc", "id", "method": "execute_task", "params": the input}, for zones
    "jsonrpc-call"  {"jsonrpc", "id", "method": any, "params": the input}
    "a2a-0.1"       {"jsonrpc", "id", "method": "tasks/send", "params"}
    "a2a-0.1-paths" the same, to <url>/tasks/send
    "a2a-0.2"       {"jsonrpc", "id", "method": "message/send" | "message/stream", "params"}
    "a2a-0.3"       the same
    "a2a-1.0"       {"jsonrpc", "id", "method": "SendMessage" | "SendStreamingMessage", "params"}
    "a2a-1.0-http"  POST /message:send or /message:stream {"message", "configuration"}

`auto` is not a dialect: it requests negotiation (negotiate.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol, runtime_checkable

from trunkline.agents import AUTO
from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json
from trunkline.protocols import simple_a2a
from trunkline.protocols.a2a import v01, v03, v1
from trunkline.protocols.a2a.v01 import A2AV01Adapter, A2AV01PathsAdapter
from trunkline.protocols.a2a.v03 import A2AV02Adapter, A2AV03Adapter, JsonRpc2Adapter
from trunkline.protocols.a2a.v1 import A2A10Adapter, A2A10HttpAdapter
from trunkline.protocols.base import ProtocolAdapter
from trunkline.protocols.config import ProtocolOption, UnusableOption, check_config
from trunkline.protocols.json_rpc import call_adapter
from trunkline.protocols.json_rpc.call_adapter import JsonRpcCallAdapter
from trunkline.protocols.simple_a2a import SimpleA2AAdapter
from trunkline.protocols.zone.adapter import ZoneAdapter


class UnsupportedProtocol(Invalid, ValueError):
    """The protocol is not known."""

    fix = "Choose one of the supported protocols, or auto."

    def __init__(self, protocol: str, supported: Sequence[str]) -> None:
        message = f"Unsupported protocol: {protocol}. Supported protocols: {', '.join(supported)}"
        super().__init__(message, findings=[Finding(path="protocol", message=message)])


@runtime_checkable
class ConfigValidator(Protocol):
    """An adapter class that checks its own `protocol_config`."""

    def validate_config(self, config: Mapping[str, Json], /) -> list[Finding]: ...


class ProtocolAdapterFactory:
    """Makes the adapter for an agent."""

    _adapters: ClassVar[dict[str, type[ProtocolAdapter]]] = {
        "simple-a2a": SimpleA2AAdapter,
        "jsonrpc-2.0": JsonRpc2Adapter,
        "jsonrpc-call": JsonRpcCallAdapter,
        "a2a-0.1": A2AV01Adapter,
        "a2a-0.1-paths": A2AV01PathsAdapter,
        "a2a-0.2": A2AV02Adapter,
        "a2a-0.3": A2AV03Adapter,
        "a2a-1.0": A2A10Adapter,
        "a2a-1.0-http": A2A10HttpAdapter,
    }

    @classmethod
    def adapter_class(
        cls, protocol: str, protocol_config: Mapping[str, Json] | None = None
    ) -> type[ProtocolAdapter]:
        try:
            found = cls._adapters[protocol]
        except KeyError:
            raise UnsupportedProtocol(protocol, cls.supported_protocols()) from None
        # This name stands for both A2A agents and zones.
        return ZoneAdapter if found is JsonRpc2Adapter and "profile" in (protocol_config or {}) else found

    @classmethod
    def create_adapter(
        cls, protocol: str, protocol_config: Mapping[str, Json] | None = None
    ) -> ProtocolAdapter:
        """
        The adapter for a protocol and an agent's configuration of it.

        Keys that the adapter does not know are left out: those of an agent with `auto` may be another's. Raises
        `Invalid` when this process does not know what the configuration names.
        """
        return cls.adapter_class(protocol, protocol_config).from_config(protocol_config or {})

    @classmethod
    def register_adapter(cls, protocol: str, adapter_class: type[ProtocolAdapter]) -> None:
        if protocol == AUTO:
            raise ValueError(f"'{AUTO}' requests negotiation and cannot be the name of a protocol")
        cls._adapters[protocol] = adapter_class

    @classmethod
    def supported_protocols(cls) -> list[str]:
        return list(cls._adapters)


# Which dialect it will be is not known yet, so the keys of all are.
_AUTO_OPTIONS: dict[str, ProtocolOption] = {
    **simple_a2a.OPTIONS,
    **call_adapter.OPTIONS,
    **v01.OPTIONS,
    **v03.OPTIONS,
    **v1.OPTIONS,
    "profile": UnusableOption(
        reason="needs the protocol jsonrpc-2.0: a zone cannot be detected automatically"
    ),
}


def validate_protocol_config(protocol: str, config: Json) -> list[Finding]:
    """
    What is wrong with an agent's `protocol_config`; with `auto` it may have the keys of every dialect.

    A third party's protocol is checked when its adapter class has a classmethod `validate_config`. Raises
    `UnsupportedProtocol`.
    """
    given = config if isinstance(config, dict) else None
    adapter_class: object = (
        None if protocol == AUTO else ProtocolAdapterFactory.adapter_class(protocol, given)
    )
    if config is None:
        return []
    if given is None:
        return [Finding(path="protocol_config", message="protocol_config must be an object")]
    if adapter_class is None:
        return check_config(_AUTO_OPTIONS, given)
    return adapter_class.validate_config(given) if isinstance(adapter_class, ConfigValidator) else []
