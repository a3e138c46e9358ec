"""
The check of one agent: its address, protocol and credentials, the limits of the check, and its exchanges.

Each exchange is within the limits. None follows when further requests make no sense.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from time import monotonic, perf_counter

import msgspec

from trunkline.agents import AUTO, NO_OPTIONS, AgentOptions
from trunkline.agents.authentication.credentials import NO_CREDENTIALS, Credentials
from trunkline.agents.check_reports import DEFAULT_SAMPLE, CheckSample
from trunkline.checker.exchanges import ProbeExchange, ProbeExchanges, ProbeRequest, record_exchange
from trunkline.checker.plans import transport as of_transport
from trunkline.jsontypes import JsonObject
from trunkline.protocols import AgentAnswer
from trunkline.telemetry.redaction import Redaction
from trunkline.transports.base import FIXED_HEADERS, Transport, TransportError

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


# Number done, total, and the current request.
OnProgress = Callable[[int, int, str], None]

CARD_HEADERS = {"Accept": "application/json", "A2A-Version": "1.0"}
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
_LOST = "agent_connection_lost"


class CheckSession:
    def __init__(
        self, transport: Transport, limits: CheckLimits, subject: CheckedAgent, on_progress: OnProgress | None
    ) -> None:
        self._transport = transport
        self._limits = limits
        self._subject = subject
        self._on_progress = on_progress
        self._deadline = monotonic() + limits.total_seconds
        self._timeouts = 0
        self._expected = 0
        self._collected: dict[str, ProbeExchange] = {}
        self.redaction = subject.redaction or Redaction(subject.credentials)
        self.card_digest: str | None = None

    @property
    def exchanges(self) -> ProbeExchanges:
        return self._collected

    @property
    def reached(self) -> bool:
        return of_transport.reachable(self._collected).judgement == "met"

    @property
    def may_continue(self) -> bool:
        """Whether another request makes sense."""
        in_time = monotonic() < self._deadline and self._timeouts < self._limits.most_timeouts
        return in_time and (not self._collected or self.reached)

    def expect(self, requests: int) -> None:
        self._expected = len(self._collected) + requests

    async def send(self, probe: ProbeRequest, endpoint: str) -> ProbeExchange:
        if self._on_progress is not None:
            self._on_progress(len(self._collected), self._expected, probe.name)
        target = _target(endpoint, probe.path)
        url = self._subject.credentials.add_to(target)
        standard = CARD_HEADERS if probe.body is None else _HEADERS
        headers = {**standard, **probe.headers, **self._subject.credentials.headers}
        started = perf_counter()
        outcome = await self._outcome(probe, url, headers)
        made = record_exchange(
            probe,
            method="GET" if probe.body is None else "POST",
            url=url,
            headers={**FIXED_HEADERS, **headers},
            outcome=outcome,
            duration_ms=round((perf_counter() - started) * 1000, 3),
            redaction=self.redaction,
        )
        if made.failure is not None and made.failure.code == "agent_timeout":
            self._timeouts += 1
        self._collected[probe.name] = made
        return made

    async def _outcome(
        self, probe: ProbeRequest, url: str, headers: dict[str, str]
    ) -> AgentAnswer | TransportError:
        outcome = await self._send_once(probe, url, headers)
        if isinstance(outcome, TransportError) and outcome.code == _LOST and outcome.partial is None:
            # The previous answer may have closed the connection: try again with another one.
            return await self._send_once(probe, url, headers)
        return outcome

    async def _send_once(
        self, probe: ProbeRequest, url: str, headers: dict[str, str]
    ) -> AgentAnswer | TransportError:
        seconds = max(min(self._limits.request_seconds, self._deadline - monotonic()), 0.01)
        tls = self._subject.credentials.tls
        try:
            if self._subject.token is not None:
                headers |= await self._subject.token(probe.body or b"")
            if probe.body is None:
                return await self._transport.get(url, headers, seconds, tls)
            return await self._transport.post(url, probe.body, headers, seconds, tls)
        except TransportError as exc:
            return exc


def _target(endpoint: str, path: str) -> str:
    if not path:
        return endpoint
    base, _, query = endpoint.partition("?")
    target = f"{base.removesuffix('/')}{path}"
    return f"{target}{'&' if '?' in path else '?'}{query}" if query else target
