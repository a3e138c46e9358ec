"""
What a transport offers: one request out, one whole answer back, or a reason.

A transport knows nothing of dialects and keeps nothing of what it carries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from trunkline import __version__
from trunkline.messages import ERROR_CODES
from trunkline.protocols.base import AgentAnswer

# What a transport adds to every request, besides Host and Content-Length.
FIXED_HEADERS: Mapping[str, str] = {
    "Accept-Encoding": "identity",
    "User-Agent": f"trunkline/{__version__}",
}


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


class Transport(Protocol):
    """
    Carries requests to agents.

    Every method sends at most once, ends within `timeout` seconds (which cover the name lookup, the
    connection, the request and the whole answer), raises `TransportError`, and closes its connection when it
    is cancelled.
    """

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - only the transport can tell which part of the exchange was cut
    ) -> AgentAnswer: ...

    async def get(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - as above
    ) -> AgentAnswer: ...
