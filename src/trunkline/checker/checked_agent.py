"""What is checked: an address, what is dialect there, and with which credentials; and how much a check may take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from trunkline.agents import AUTO, NO_OPTIONS, AgentOptions
from trunkline.agents.authentication.credentials import NO_CREDENTIALS, Credentials
from trunkline.agents.check_reports import DEFAULT_SAMPLE, CheckSample
from trunkline.jsontypes import JsonObject
from trunkline.telemetry.redaction import Redaction

# The header with a token for this body, where the agent wants one; raises `TransportError`.
TokenFor = Callable[[bytes], Awaitable[Mapping[str, str]]]


class CheckedAgent(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    protocol: str = AUTO
    protocol_config: JsonObject = {}
    options: AgentOptions = NO_OPTIONS
    credentials: Credentials = NO_CREDENTIALS
    token: TokenFor | None = None
    # What hides the credentials, and the tokens that `token` gives; None: one is made of the credentials.
    redaction: Redaction | None = None
    sample: CheckSample = DEFAULT_SAMPLE
    # Its name in the registry, where it has one.
    agent: str | None = None


class CheckLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a check waits for one answer, and for all of them."""

    request_seconds: float = 10.0
    total_seconds: float = 120.0
    # An agent that has kept us waiting so often is asked no more.
    most_timeouts: int = 2
