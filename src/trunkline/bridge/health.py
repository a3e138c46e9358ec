"""
Whether an agent can be reached, found out without asking it to do anything.

Over https by one GET. A program is only looked for. A runtime of AgentCore cannot be asked: every call is work.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Literal

import msgspec

from trunkline.agents import Agent
from trunkline.agents.carriers import parse_program, transport_of
from trunkline.agents.programs import Program
from trunkline.bridge.partners import AgentResolver, ResolvedAgent
from trunkline.clock import Clock, Instant, seconds_between
from trunkline.messages import StepError
from trunkline.transports.base import Transport, TransportError

_HEALTH_SECONDS = 5.0
_NOT_ASKED = "It cannot be asked without giving it work: AgentCore has only calls."

HealthStatus = Literal["healthy", "unhealthy", "unknown"]


class AgentHealth(msgspec.Struct, frozen=True, kw_only=True):
    status: HealthStatus
    checked_at: Instant
    detail: str
    protocol: str | None
    http_status: int | None
    duration_ms: float


class AgentHealthCheck:
    def __init__(
        self, transport: Transport, resolver: AgentResolver, clock: Clock, programs: Mapping[str, Program]
    ) -> None:
        self._transport = transport
        self._programs = programs
        self._resolver = resolver
        self._clock = clock

    async def __call__(self, agent: Agent) -> AgentHealth:
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

    async def _ask(self, resolved: ResolvedAgent, started: Instant) -> AgentHealth:
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
            return "unhealthy", f"No program is called {name} in TRUNKLINE_STDIO_COMMANDS."
        if shutil.which(program.command[0]) is None:
            return "unhealthy", f"The program {name} cannot be started: its command is not there."
        return "healthy", f"The program {name} can be started."

    def _report(
        self,
        started: Instant,
        status: HealthStatus,
        detail: str,
        protocol: str | None = None,
        http_status: int | None = None,
    ) -> AgentHealth:
        return AgentHealth(
            status=status,
            checked_at=started,
            detail=detail,
            protocol=protocol,
            http_status=http_status,
            duration_ms=seconds_between(started, self._clock.now()) * 1000,
        )
