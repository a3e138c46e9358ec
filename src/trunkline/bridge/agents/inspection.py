"""
What operators ask about an agent: whether it can be reached, and its card as it is now.

The health check gives the agent no work. Over https it sends one GET. A program is only looked for. An AgentCore
runtime cannot be asked, because every call is work. Nothing here decides how an agent is called, and nothing is stored.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Literal

import msgspec

from trunkline.agents import Agent
from trunkline.agents.cards import MAX_CARD_BYTES
from trunkline.agents.stdio_programs import StdioProgram
from trunkline.agents.transport_urls import parse_program, transport_of
from trunkline.bridge.agents.cards import CardFetcher
from trunkline.bridge.agents.negotiation import reads_card
from trunkline.bridge.agents.resolver import AgentResolver, ResolvedAgent
from trunkline.bridge.agents.tokens import TokenProvider
from trunkline.clock import Clock, Instant, seconds_between
from trunkline.messages import StepError
from trunkline.protocols import CardFetch, describe_fetch, next_card_url
from trunkline.protocols.answer_json import NotJson, parse
from trunkline.services.agents.inspection import CardView
from trunkline.transports.base import Transport, TransportError

_HEALTH_SECONDS = 5.0
_NOT_ASKED = (
    "AgentCore offers no request other than a call, so the agent cannot be reached without giving it work."
)

HealthStatus = Literal["healthy", "unhealthy", "unknown"]


class AgentHealthReport(msgspec.Struct, frozen=True, kw_only=True):
    status: HealthStatus
    checked_at: Instant
    detail: str
    protocol: str | None
    http_status: int | None
    duration_ms: float


class AgentHealthCheck:
    def __init__(
        self,
        transport: Transport,
        resolver: AgentResolver,
        clock: Clock,
        programs: Mapping[str, StdioProgram],
    ) -> None:
        self._transport = transport
        self._programs = programs
        self._resolver = resolver
        self._clock = clock

    async def __call__(self, agent: Agent) -> AgentHealthReport:
        started = self._clock.now()
        resolved = await self._resolver.resolve(agent)
        if isinstance(resolved, StepError):
            return self._report(started, "unhealthy", resolved.message)
        match transport_of(resolved.address):
            case "aws-agentcore":
                return self._report(started, "unknown", _NOT_ASKED, resolved.protocol)
            case "stdio":
                status, detail = self._look_for(parse_program(resolved.address))
                return self._report(started, status, detail, resolved.protocol)
            case "https":
                return await self._ask(resolved, started)

    async def _ask(self, resolved: ResolvedAgent, started: Instant) -> AgentHealthReport:
        headers = {"Accept": "application/json", **resolved.credentials.headers}
        try:
            headers |= await resolved.token_headers(_HEALTH_SECONDS)
            tls = resolved.credentials.tls
            answer = await self._transport.get(resolved.address, headers, _HEALTH_SECONDS, tls)
        except TransportError as exc:
            return self._report(started, "unhealthy", resolved.redaction.text(exc.message), resolved.protocol)
        # An agent that takes only POST says 405, or 404: it is there all the same.
        healthy = answer.status < 500 or answer.status == 501
        detail = f"It answered HTTP {answer.status}."
        return self._report(
            started, "healthy" if healthy else "unhealthy", detail, resolved.protocol, answer.status
        )

    def _look_for(self, name: str) -> tuple[HealthStatus, str]:
        program = self._programs.get(name)
        if program is None:
            return "unhealthy", f"TRUNKLINE_STDIO_COMMANDS has no program {name}."
        if shutil.which(program.command[0]) is None:
            return "unhealthy", f"The program {name} cannot be started: its command does not exist."
        return "healthy", f"The program {name} can be started."

    def _report(
        self,
        started: Instant,
        status: HealthStatus,
        detail: str,
        protocol: str | None = None,
        http_status: int | None = None,
    ) -> AgentHealthReport:
        return AgentHealthReport(
            status=status,
            checked_at=started,
            detail=detail,
            protocol=protocol,
            http_status=http_status,
            duration_ms=seconds_between(started, self._clock.now()) * 1000,
        )


_HAS_NONE = "Its calls do not depend on a card, so none is requested."


class CardViewer:
    def __init__(
        self, transport: Transport, resolver: AgentResolver, tokens: TokenProvider, clock: Clock
    ) -> None:
        self._reader = CardFetcher(transport, clock, tokens)
        self._resolver = resolver
        self._tokens = tokens
        self._clock = clock

    async def __call__(self, agent: Agent) -> CardView:
        asked_at = self._clock.now()
        if not reads_card(agent):
            return CardView(asked_at=asked_at, detail=_HAS_NONE)
        credentials = self._resolver.credentials_of(agent)
        if isinstance(credentials, StepError):
            return CardView(asked_at=asked_at, detail=credentials.message)
        redaction = self._tokens.redaction(credentials)
        fetches: list[CardFetch] = []
        known = None if agent.dialect is None else agent.dialect.card_url
        url = known or next_card_url(agent.url, fetches)
        while url is not None:
            try:
                fetch = await self._reader.fetch(url, credentials)
            except TransportError as exc:
                return CardView(asked_at=asked_at, url=redaction.url(url), detail=exc.message)
            fetches.append(fetch)
            url = None if known is not None else next_card_url(agent.url, fetches)
        last = fetches[-1]
        detail = redaction.text(describe_fetch(last))
        shown = redaction.url(last.url)
        if last.status != 200 or len(last.body) > MAX_CARD_BYTES:
            return CardView(asked_at=asked_at, url=shown, detail=detail)
        try:
            card = parse(redaction.text(last.body.decode("utf-8", "replace")).encode())
        except NotJson as exc:
            return CardView(asked_at=asked_at, url=shown, detail=str(exc))
        return CardView(asked_at=asked_at, url=shown, detail=detail, card=card, digest=last.digest)
