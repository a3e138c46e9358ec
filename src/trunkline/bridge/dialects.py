"""
Which dialect an agent is spoken to in: what the operator pinned, what was found out before, or what its card says.

The rule itself is pure (`protocols.negotiate`); this module fetches the cards and remembers the answer.
"""

from __future__ import annotations

import asyncio

import structlog

from trunkline.agents import AUTO, Agent, Dialect
from trunkline.agents.auth import Credentials
from trunkline.bridge.redaction import Redaction
from trunkline.bridge.transports.base import Transport, TransportError
from trunkline.clock import Clock
from trunkline.errors import NotFound, Unavailable
from trunkline.messages import StepError, fix_for
from trunkline.protocols import CardFetch, Negotiated, Unclear, negotiate, next_card_url
from trunkline.services.registry import Registry
from trunkline.telemetry import names

log = structlog.stdlib.get_logger()

_CARD_SECONDS = 5.0
# What an agent without a card is taken to speak, and what else it may speak when it proves us wrong.
_WITHOUT_CARD = "simple-a2a"
_SECOND_GUESS = "jsonrpc-2.0"


class DialectUnclear(Exception):
    """Nobody can say how to speak to the agent; nothing was sent."""

    def __init__(self, error: StepError) -> None:
        super().__init__(error.message)
        self.error = error


class Dialects:
    def __init__(self, transport: Transport, registry: Registry, clock: Clock) -> None:
        self._transport = transport
        self._registry = registry
        self._clock = clock
        # One look at a time for each agent: a hundred first calls ask for its card once.
        self._looking: dict[str, asyncio.Lock] = {}
        # Agents whose last answer made no sense in the dialect that they are known for.
        self._doubted: set[str] = set()

    async def of(self, agent: Agent, credentials: Credentials) -> Dialect:
        """Raises `DialectUnclear`."""
        if agent.protocol != AUTO:
            return Dialect(
                protocol=agent.protocol,
                url=agent.url,
                evidence="Pinned by the operator.",
                decided_at=agent.updated_at,
            )
        if agent.dialect is not None and agent.id not in self._doubted:
            return agent.dialect
        async with self._looking.setdefault(agent.id, asyncio.Lock()):
            known = await self._known(agent)
            if known is not None and agent.id not in self._doubted:
                return known
            return await self._look_again(agent, known, credentials)

    def doubt(self, agent: Agent) -> None:
        """Asks for the card again before the next call: the agent may have moved on."""
        self._doubted.add(agent.id)

    async def _look_again(self, agent: Agent, known: Dialect | None, credentials: Credentials) -> Dialect:
        try:
            fresh = await self._look(agent, credentials)
        except DialectUnclear:
            # An agent that is down or busy says nothing new about its dialect.
            if known is None:
                raise
            return known
        self._doubted.discard(agent.id)
        return fresh

    async def _known(self, agent: Agent) -> Dialect | None:
        try:
            return (await self._registry.get(agent.id)).dialect
        except NotFound:
            # Deleted while it is being called; this call still ends.
            return None
        except Unavailable as exc:
            _note_unavailable(exc)
            return None

    async def another(self, agent: Agent, refused: Dialect, credentials: Credentials) -> Dialect | None:
        """
        What to try after an agent has proved that it did not take a request in `refused`; None: nothing else.

        The card is asked again first: the agent may have moved on. A guess is kept by `adopt`, once it has worked.
        """
        if agent.protocol != AUTO:
            return None
        async with self._looking.setdefault(agent.id, asyncio.Lock()):
            known = await self._known(agent)
            if known is not None and known.protocol != refused.protocol:
                return known
            fresh = await self._look(agent, credentials)
            if fresh.protocol != refused.protocol:
                return fresh
            if refused.protocol != _WITHOUT_CARD:
                return None
            return Dialect(
                protocol=_SECOND_GUESS,
                url=agent.url,
                evidence=f"The agent refused {refused.protocol} and has no card.",
                decided_at=self._clock.now(),
            )

    async def adopt(self, agent: Agent, dialect: Dialect) -> None:
        """Keeps what has proved right."""
        known = await self._known(agent)
        if known is None or known.protocol != dialect.protocol:
            await self._keep(agent, dialect)

    async def _look(self, agent: Agent, credentials: Credentials) -> Dialect:
        fetches: list[CardFetch] = []
        while (url := next_card_url(agent.url, fetches)) is not None:
            fetches.append(await self._fetch(url, credentials))
        found = negotiate(agent.url, fetches)
        redaction = Redaction(credentials)
        if isinstance(found, Negotiated) and redaction.text(found.url) != found.url:
            found = Unclear(reason="The card names an endpoint that contains the agent's secret")
        if isinstance(found, Unclear):
            code = "agent_protocol_unclear"
            reason = redaction.text(found.reason)
            raise DialectUnclear(StepError(code=code, message=reason, fix=found.fix or fix_for(code)))
        return await self._keep(
            agent,
            Dialect(
                protocol=found.protocol,
                url=found.url,
                evidence=redaction.text(found.evidence),
                decided_at=self._clock.now(),
                card_etag=found.card_etag,
            ),
        )

    async def _fetch(self, url: str, credentials: Credentials) -> CardFetch:
        headers = {"Accept": "application/json", "A2A-Version": "1.0", **credentials.headers}
        try:
            answer = await self._transport.get(credentials.add_to(url), headers, _CARD_SECONDS)
        except TransportError as exc:
            return CardFetch(url=url, failure=exc.message)
        return CardFetch(url=url, status=answer.status, body=answer.body, etag=answer.headers.get("etag"))

    async def _keep(self, agent: Agent, dialect: Dialect) -> Dialect:
        try:
            await self._registry.record_dialect(agent, dialect)
        except Unavailable as exc:
            # No reason to lose this call, or its answer: whoever does not find it later finds it out again.
            _note_unavailable(exc)
        log.info(
            names.DIALECT_DECIDED, agent_name=agent.name, protocol=dialect.protocol, evidence=dialect.evidence
        )
        return dialect


def _note_unavailable(exc: Unavailable) -> None:
    log.error(names.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
