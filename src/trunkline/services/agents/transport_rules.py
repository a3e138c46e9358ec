"""
What an agent cannot use with a transport other than https.

Such a transport sends a body and returns a body: no headers, paths, cards or streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trunkline.agents import AUTO, AgentOptions, TransportName
from trunkline.agents.transport_urls import check_transport_url
from trunkline.errors import Finding
from trunkline.jsontypes import Json
from trunkline.protocols import ProtocolAdapterFactory

_WHY_NO_CREDENTIALS: Mapping[TransportName, str] = {
    "aws-agentcore": "calls are signed with the AWS credentials of the bridge",
    "stdio": "a program that the bridge starts needs no authentication",
}


def check_transport_rules(
    url: str,
    options: AgentOptions,
    protocol: str,
    protocol_config: Mapping[str, Json] | None,
    auth_type: str,
    *,
    has_secret: bool,
) -> Iterable[Finding]:
    reason = check_transport_url(options.transport, url)
    if reason is not None:
        yield Finding(path="url", message=f"cannot be called: {reason}")
    if options.transport == "https":
        return
    over = f"over {options.transport}"
    yield from _check_protocol(protocol, over)
    if "batch" in (protocol_config or {}):
        yield Finding(path="protocol_config.batch", message=f"'batch' is not supported {over}")
    for field in ("endpoint_override", "allow_card_origin"):
        if getattr(options, field):
            yield Finding(path=field, message=f"must be left out {over}, where no card is read")
    if auth_type != "none" or has_secret:
        path = "auth_config" if auth_type == "none" else "auth_type"
        wanted = "left out" if auth_type == "none" else "none"
        why = _WHY_NO_CREDENTIALS[options.transport]
        yield Finding(path=path, message=f"must be {wanted} {over}, because {why}")


def _check_protocol(protocol: str, over: str) -> Iterable[Finding]:
    if protocol == AUTO:
        yield Finding(
            path="protocol",
            message=f"protocol: auto is not supported {over}, where no card is read; set a protocol such as "
            "jsonrpc-2.0",
        )
    elif (
        protocol in ProtocolAdapterFactory.supported_protocols()
        and ProtocolAdapterFactory.adapter_class(protocol).needs_http
    ):
        yield Finding(
            path="protocol",
            message=f"protocol: {protocol} needs HTTP headers or paths and cannot be used {over}",
        )
