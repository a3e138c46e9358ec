"""What is checked: an address, its protocol and credentials; and the limits of a check."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from trunkline.agents import AUTO, NO_OPTIONS, AgentOptions
from trunkline.agents.authentication.credentials import NO_CREDENTIALS, Credentials
from trunkline.agents.check_reports import DEFAULT_SAMPLE, CheckSample
from trunkline.jsontypes import JsonObject
from trunkline.telemetry.redaction import Redaction

# Returns the header with a token for this body if the agent requires one; raises `TransportError`.
TokenFor = Callable[[bytes], Awaitable[Mapping[str, str]]]


class CheckedAgent(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    protocol: str = AUTO
    protocol_config: JsonObject = {}
    options: AgentOptions = NO_OPTIONS
    credentials: Credentials = NO_CREDENTIALS
    token: TokenFor | None = None
    # Redacts the credentials and the tokens of `token`; None: it is created from the credentials.
    redaction: Redaction | None = None
    sample: CheckSample = DEFAULT_SAMPLE
    # Its name in the registry, if it is registered.
    agent: str | None = None


class CheckLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a check waits for one answer, and for all of them."""

    request_seconds: float = 10.0
    total_seconds: float = 120.0
    # After this many timeouts the check sends no more requests.
    most_timeouts: int = 2
