"""One transport for all agents: passes each request to the one for the form of its URL (`agents.transport_urls`)."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from contextlib import AbstractAsyncContextManager

from trunkline.agents import TransportName
from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.agents.transport_urls import transport_of
from trunkline.protocols.base import AgentAnswer
from trunkline.transports.base import StreamedAnswer, StreamLimits, Transport, TransportError

UNAVAILABLE = "agent_transport_unavailable"


class TransportRouter:
    def __init__(self, transports: Mapping[TransportName, Transport]) -> None:
        self._transports = transports

    def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: float,
        tls: TlsConfig | None = None,
    ) -> Awaitable[AgentAnswer]:
        return self._for(url).post(url, body, headers, timeout, tls)

    def get(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout: float,
        tls: TlsConfig | None = None,
    ) -> Awaitable[AgentAnswer]:
        return self._for(url).get(url, headers, timeout, tls)

    def stream(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: StreamLimits,
        tls: TlsConfig | None = None,
    ) -> AbstractAsyncContextManager[StreamedAnswer]:
        return self._for(url).stream(url, body, headers, limits, tls)

    def _for(self, url: str) -> Transport:
        name = transport_of(url)
        transport = self._transports.get(name)
        if transport is None:
            raise TransportError(UNAVAILABLE, f"This process has no transport {name}.")
        return transport
