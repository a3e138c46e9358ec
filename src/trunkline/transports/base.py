"""
What a transport offers: one request out, one whole answer back, or a reason.

A transport knows nothing of dialects and keeps nothing of what it carries.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Protocol

import msgspec

from trunkline import __version__
from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.messages import ERROR_CODES
from trunkline.protocols.base import AgentAnswer

# What a transport adds to every request, besides Host and Content-Length.
FIXED_HEADERS: Mapping[str, str] = {
    "Accept-Encoding": "identity",
    "User-Agent": f"trunkline/{__version__}",
}

# The named secrets in the request that the current asyncio task sends, for a transport that writes its own log lines:
# they must not appear there. Set by the code that fills them in.
SECRETS_SENT: ContextVar[tuple[str, ...]] = ContextVar("secrets_sent", default=())


# The code of an error that the agent has no part in: this machine lacks file descriptors, memory or a local port.
OUT_OF_RESOURCES = "out_of_resources"


class TransportError(Exception):
    """
    No whole answer came. `code` is one of `messages.ERROR_CODES`, and tells whether the request was sent.

    `partial` is what had come of the answer by then, for the record.
    """

    def __init__(self, code: str, message: str, *, partial: AgentAnswer | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.partial = partial

    @property
    def sent(self) -> bool:
        """False: the request certainly never reached the agent."""
        return ERROR_CODES[self.code].sent


class StreamLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream may cost: seconds, and bytes."""

    # Until the head of the answer is there; between two pieces of it; and all in all.
    first_seconds: float
    idle_seconds: float
    total_seconds: float
    total_bytes: int


class StreamedAnswer(Protocol):
    """An answer while it comes."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """
        The body piece by piece, until the agent ends it properly.

        Raises `TransportError`: it was cut, went silent (`agent_timeout`), or is longer than it may be.
        """
        ...


class Transport(Protocol):
    """
    Carries requests to agents.

    Every method sends at most once, ends within `timeout` seconds (which cover the name lookup, the
    connection, the request and the whole answer), raises `TransportError`, and closes its connection when it
    is cancelled.
    """

    def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        # Only the transport can tell which part of the exchange was cut.
        timeout: float,
        tls: TlsConfig | None = None,
    ) -> Awaitable[AgentAnswer]: ...

    def get(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout: float,
        tls: TlsConfig | None = None,
    ) -> Awaitable[AgentAnswer]: ...

    def stream(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: StreamLimits,
        tls: TlsConfig | None = None,
    ) -> AbstractAsyncContextManager[StreamedAnswer]:
        """A POST, or without a body a GET, whose answer is read as it comes; leaving it closes the connection."""
        ...
