"""Whether an agent can be reached: one GET, which asks it to do nothing."""

from __future__ import annotations

from typing import Literal

import msgspec

from trunkline.agents import Agent
from trunkline.bridge.partners import Partners
from trunkline.clock import Clock, Instant, seconds_between
from trunkline.messages import StepError
from trunkline.transports.base import Transport, TransportError

_HEALTH_SECONDS = 5.0


class HealthReport(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["healthy", "unhealthy"]
    checked_at: Instant
    detail: str
    protocol: str | None
    http_status: int | None
    duration_ms: float


class HealthCheck:
    def __init__(self, transport: Transport, partners: Partners, clock: Clock) -> None:
        self._transport = transport
        self._partners = partners
        self._clock = clock

    async def __call__(self, agent: Agent) -> HealthReport:
        started = self._clock.now()
        partner = await self._partners.of(agent)
        if isinstance(partner, StepError):
            return self._report(started, "unhealthy", partner.message)
        headers = {"Accept": "application/json", **partner.credentials.headers}
        try:
            headers |= await partner.token(_HEALTH_SECONDS)
            tls = partner.credentials.tls
            answer = await self._transport.get(partner.address, headers, _HEALTH_SECONDS, tls)
        except TransportError as exc:
            return self._report(started, "unhealthy", partner.redaction.text(exc.message), partner.protocol)
        # An agent that takes only POST says 405, or 404: it is there all the same.
        healthy = answer.status < 500 or answer.status == 501
        detail = f"It answered HTTP {answer.status}."
        return self._report(
            started, "healthy" if healthy else "unhealthy", detail, partner.protocol, answer.status
        )

    def _report(
        self,
        started: Instant,
        status: Literal["healthy", "unhealthy"],
        detail: str,
        protocol: str | None = None,
        http_status: int | None = None,
    ) -> HealthReport:
        return HealthReport(
            status=status,
            checked_at=started,
            detail=detail,
            protocol=protocol,
            http_status=http_status,
            duration_ms=seconds_between(started, self._clock.now()) * 1000,
        )
