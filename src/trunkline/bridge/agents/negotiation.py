"""
Which dialect an agent speaks: what the operator pinned, what was negotiated before, or what its card says.

The rule itself does no I/O (`protocols.negotiate`); this module reads cards and stores the result. Once a dialect is
known, a call costs nothing more: whether the card has changed is checked in the background, every few minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Protocol, Self, TypeAlias
from urllib.parse import urlsplit

import msgspec
import structlog

from trunkline.agents import AUTO, Agent, Dialect, DialectProbe
from trunkline.agents.authentication.auth_config import Credentials
from trunkline.bridge.agents.cards import CardFetcher
from trunkline.bridge.agents.tokens import TokenProvider
from trunkline.bridge.wire.exchanges import AuxiliaryRecorder
from trunkline.clock import Clock, Instant, after
from trunkline.errors import NotFound, Unavailable
from trunkline.messages import StepError, fix_for
from trunkline.protocols import (
    A2A_DIALECTS,
    CardFetch,
    NegotiatedDialect,
    ProtocolOffer,
    UnclearDialect,
    describe_fetch,
    negotiate,
    negotiate_pinned,
    next_card_url,
    validate_protocol_config,
)
from trunkline.protocols.negotiate import WITHOUT_CARD
from trunkline.telemetry import log_events
from trunkline.telemetry.redaction import Redaction
from trunkline.transports.base import Transport, TransportError

log = structlog.stdlib.get_logger()

# Protocol, url, tenant and whether messages are streamed: two dialects that agree in all four are the same.
_Endpoint: TypeAlias = "tuple[str, str, str | None, bool]"
# How long a card counts as unchanged: one request in this time, whatever the load.
CARD_FRESH_FOR = timedelta(minutes=5)
_WHOLE_INPUT = (
    "It answered in Simple A2A before, so it gets the whole input. Set input_mode for another form."
)
# Of the evidence; more of it does not help.
_MAX_PROBES = 20
# Dialects that one call tries; a card may name any number.
_MAX_ALTERNATIVES = 6


class DialectUnclear(Exception):
    """The agent's dialect cannot be determined; nothing was sent."""

    def __init__(self, error: StepError) -> None:
        super().__init__(error.message)
        self.error = error


class DialectStore(Protocol):
    """Where negotiated dialects are kept: in the registry, except for the targets of migrations."""

    async def get(self, name_or_id: str) -> Agent:
        """With its dialect, if that is known; raises `NotFound` and `Unavailable`."""
        ...

    async def record_dialect(self, agent: Agent, dialect: Dialect | None) -> bool:
        """False: the agent has changed meanwhile. Raises `Unavailable`."""
        ...

    async def has_answered_in(self, agent: Agent, dialect: Dialect) -> bool:
        """Whether a call has succeeded since the agent was found to speak it. Raises `Unavailable`."""
        ...


# Told of an agent that has answered in the first dialect and speaks the second one now.
ChangeObserver: TypeAlias = Callable[[Agent, Dialect, Dialect], None]


def _ignore_change(agent: Agent, before: Dialect, after: Dialect) -> None:
    """Nothing compares the dialects."""
    del agent, before, after


class DialectNegotiator:
    """Used with `async with`, it cancels its background checks at the end."""

    def __init__(self, transport: Transport, book: DialectStore, clock: Clock, tokens: TokenProvider) -> None:
        self._tokens = tokens
        self._reader = CardFetcher(transport, clock, tokens)
        self._store = book
        self._clock = clock
        # One negotiation at a time for each agent: a hundred first calls ask for its card once.
        self._locks: dict[str, asyncio.Lock] = {}
        # Agents whose last answer made no sense in their stored dialect.
        self._invalidated: set[str] = set()
        # When to ask for an agent's card again.
        self._due: dict[str, Instant] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._note_change: ChangeObserver = _ignore_change

    def on_change(self, note: ChangeObserver) -> None:
        self._note_change = note

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    async def dialect_of(
        self, agent: Agent, credentials: Credentials, note: AuxiliaryRecorder | None = None
    ) -> Dialect:
        """Raises `DialectUnclear`; `note` gets each request that was made to find it out."""
        if not reads_card(agent):
            return _pinned(agent, agent.updated_at)
        if agent.dialect is not None and agent.id not in self._invalidated:
            return agent.dialect
        async with self._lock(agent):
            known = await self._stored_dialect(agent)
            if known is not None and agent.id not in self._invalidated:
                return known
            return await self._renegotiate(agent, known, credentials, note)

    async def refresh(self, agent: Agent, credentials: Credentials) -> Dialect | None:
        """Negotiates now, whatever is stored, and stores the result; None: the agent has no card to read."""
        if not reads_card(agent):
            return None
        async with self._lock(agent):
            found, probes = await self._read_cards(agent, credentials, None)
            self._invalidated.discard(agent.id)
            known = await self._stored_dialect(agent)
            return await self._record(agent, _as_dialect(found, self._clock.now(), probes), known)

    def invalidate(self, agent: Agent) -> None:
        """Reads the card again before the next call: the agent may have been upgraded."""
        self._invalidated.add(agent.id)

    def refresh_in_background(self, agent: Agent, dialect: Dialect, credentials: Credentials) -> None:
        """
        Checks whether the card has changed if that is due, and does not wait for it.

        In the path of every call: no read of the store, no request.
        """
        if dialect.card_url is None and (agent.dialect is not None or not reads_card(agent)):
            return
        now = self._clock.now()
        if now < (self._due.get(agent.id) or after(dialect.decided_at, CARD_FRESH_FOR)):
            return
        self._due[agent.id] = after(now, CARD_FRESH_FOR)
        task = asyncio.create_task(self._check_card(agent, dialect, credentials))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def alternatives(
        self,
        agent: Agent,
        refused: Dialect,
        because: str,
        credentials: Credentials,
        note: AuxiliaryRecorder | None = None,
    ) -> Sequence[Dialect]:
        """
        What to try, in this order, after an agent has proved that it did not accept a request in `refused`.

        The card is read again first: the agent may have been upgraded. Nothing is stored before `adopt`. Raises
        `DialectUnclear`.
        """
        if agent.protocol != AUTO:
            return ()
        async with self._lock(agent):
            known = await self._stored_dialect(agent)
            found, probes = await self._read_cards(agent, credentials, note)
        now = self._clock.now()
        fresh = _as_dialect(found, now, (*probes, refusal(refused, because, now)))
        others = (
            _alternative(fresh, offer, refused)
            for offer in found.others
            if self._tokens.redaction(credentials).text(offer.url) == offer.url
        )
        distinct: dict[_Endpoint, Dialect] = {}
        for alternative in (*(() if known is None else (known,)), fresh, *others):
            distinct.setdefault(_endpoint(alternative), alternative)
        distinct.pop(_endpoint(refused), None)
        others_left = list(distinct.values())[:_MAX_ALTERNATIVES]
        if not await self._gets_whole_input(agent, refused):
            return others_left
        return [_with_whole_input(each) for each in others_left]

    def with_refusal(self, alternative: Dialect, refused: Dialect, because: str) -> Dialect:
        """The dialect that is tried next, with the evidence that the one before it was refused as well."""
        probe = refusal(refused, because, self._clock.now())
        return msgspec.structs.replace(alternative, tried=(*alternative.tried, probe)[-_MAX_PROBES:])

    async def adopt(self, agent: Agent, dialect: Dialect) -> None:
        """Stores a dialect that the agent has accepted."""
        self._invalidated.discard(agent.id)
        known = await self._stored_dialect(agent)
        if known is None or _endpoint(known) != _endpoint(dialect):
            await self._record(agent, dialect, known)

    def _lock(self, agent: Agent) -> asyncio.Lock:
        return self._locks.setdefault(agent.id, asyncio.Lock())

    async def _stored_dialect(self, agent: Agent) -> Dialect | None:
        try:
            return (await self._store.get(agent.id)).dialect
        except NotFound:
            # Deleted while it is being called; this call still ends.
            return None
        except Unavailable as exc:
            _note_unavailable(exc)
            return None

    async def _renegotiate(
        self, agent: Agent, known: Dialect | None, credentials: Credentials, note: AuxiliaryRecorder | None
    ) -> Dialect:
        try:
            found, probes = await self._read_cards(agent, credentials, note)
        except DialectUnclear as exc:
            # An agent that is down or busy tells nothing new about its dialect.
            if known is not None:
                return known
            if agent.protocol == AUTO:
                raise
            # What is pinned is known without a card; what else the card says is read later.
            return _pinned(agent, self._clock.now(), f" {exc.error.message}")
        self._invalidated.discard(agent.id)
        return await self._record(agent, _as_dialect(found, self._clock.now(), probes), known)

    async def _gets_whole_input(self, agent: Agent, before: Dialect) -> bool:
        """Whether the agent got the whole input in a dialect, and so perhaps reads nothing else."""
        if "input_mode" in (agent.protocol_config or {}):
            return False
        if before.protocol != WITHOUT_CARD:
            return before.whole_input
        return await self._has_answered(agent, before)

    async def _has_answered(self, agent: Agent, dialect: Dialect) -> bool:
        try:
            return await self._store.has_answered_in(agent, dialect)
        except Unavailable as exc:
            _note_unavailable(exc)
            return False

    async def _read_cards(
        self, agent: Agent, credentials: Credentials, note: AuxiliaryRecorder | None
    ) -> tuple[NegotiatedDialect, tuple[DialectProbe, ...]]:
        fetches: list[CardFetch] = []
        probes: list[DialectProbe] = []
        while (url := next_card_url(agent.url, fetches)) is not None:
            fetch, probe = await self._fetch(url, credentials, note=note)
            fetches.append(fetch)
            probes.append(probe)
        return _negotiated(agent, fetches, self._tokens.redaction(credentials)), tuple(probes)

    async def _fetch(
        self,
        url: str,
        credentials: Credentials,
        *,
        etag: str | None = None,
        note: AuxiliaryRecorder | None = None,
    ) -> tuple[CardFetch, DialectProbe]:
        asked_at = self._clock.now()
        redaction = self._tokens.redaction(credentials)
        try:
            fetch = await self._reader.fetch(url, credentials, etag=etag, note=note)
        except TransportError as exc:
            error = StepError(code=exc.code, message=redaction.text(exc.message), fix=fix_for(exc.code))
            raise DialectUnclear(error) from exc
        answered = redaction.text(describe_fetch(fetch))
        return fetch, DialectProbe(at=asked_at, tried=f"GET {urlsplit(url).path}", answered=answered)

    async def _check_card(self, agent: Agent, dialect: Dialect, credentials: Credentials) -> None:
        try:
            async with self._lock(agent):
                if dialect.card_url is None:
                    found, probes = await self._read_cards(agent, credentials, None)
                else:
                    fetch, probe = await self._fetch(dialect.card_url, credentials, etag=dialect.card_etag)
                    if fetch.status != 200 or fetch.digest == dialect.card_digest:
                        return
                    found, probes = _negotiated(agent, [fetch], self._tokens.redaction(credentials)), (probe,)
                if found.card_url is not None:
                    await self._record(agent, _as_dialect(found, self._clock.now(), probes), dialect)
        except DialectUnclear as exc:
            # The calls go on as before: the agent may still take them.
            log.warning(log_events.CARD_NOT_USED, agent_name=agent.name, reason=exc.error.message)

    async def _record(self, agent: Agent, dialect: Dialect, before: Dialect | None) -> Dialect:
        self._due[agent.id] = after(self._clock.now(), CARD_FRESH_FOR)
        if before is not None and await self._gets_whole_input(agent, before):
            dialect = _with_whole_input(dialect)
        try:
            await self._store.record_dialect(agent, dialect)
        except Unavailable as exc:
            # No reason to lose this call, or its answer: a dialect that is not stored is negotiated again.
            _note_unavailable(exc)
        log.info(
            log_events.DIALECT_DECIDED,
            agent_name=agent.name,
            protocol=dialect.protocol,
            evidence=dialect.evidence,
        )
        await self._note_other_protocol(agent, before, dialect)
        return dialect

    async def _note_other_protocol(self, agent: Agent, before: Dialect | None, dialect: Dialect) -> None:
        """Without an answer in the dialect before, that was only a guess."""
        if before is None or before.protocol == dialect.protocol or agent.protocol != AUTO:
            return
        if await self._has_answered(agent, before):
            self._note_change(agent, before, dialect)


def reads_card(agent: Agent) -> bool:
    """Whether an agent's card decides anything: the dialect, or what a pinned dialect of A2A can do there."""
    if agent.options.transport != "https":
        return False
    return agent.protocol == AUTO or agent.protocol in A2A_DIALECTS


def refusal(refused: Dialect, because: str, at: Instant) -> DialectProbe:
    """The evidence that the agent does not speak `refused`."""
    return DialectProbe(
        at=at, tried=f"POST {urlsplit(refused.url).path} in {refused.protocol}", answered=because
    )


def _negotiated(agent: Agent, fetches: Sequence[CardFetch], redaction: Redaction) -> NegotiatedDialect:
    """Raises `DialectUnclear`."""
    found = (
        negotiate(agent.url, fetches, agent.options)
        if agent.protocol == AUTO
        else negotiate_pinned(agent.protocol, agent.url, fetches, agent.options)
    )
    if isinstance(found, NegotiatedDialect) and redaction.text(found.url) != found.url:
        found = UnclearDialect(reason="The card names an endpoint that contains the agent's secret")
    if isinstance(found, UnclearDialect):
        code = "agent_protocol_unclear"
        reason = redaction.text(found.reason)
        fix = redaction.text(found.fix) or fix_for(code)
        raise DialectUnclear(StepError(code=code, message=reason, fix=fix))
    return msgspec.structs.replace(found, evidence=redaction.text(found.evidence))


def _endpoint(dialect: Dialect) -> _Endpoint:
    return dialect.protocol, dialect.url, dialect.tenant, dialect.streams


def _with_whole_input(dialect: Dialect) -> Dialect:
    if dialect.whole_input or validate_protocol_config(dialect.protocol, {"input_mode": "json"}):
        return dialect
    return msgspec.structs.replace(
        dialect, whole_input=True, evidence=f"{dialect.evidence.rstrip('.')}. {_WHOLE_INPUT}"
    )


def _pinned(agent: Agent, at: Instant, remark: str = "") -> Dialect:
    return Dialect(
        protocol=agent.protocol,
        url=agent.options.endpoint_override or agent.url,
        evidence=f"Pinned by the operator.{remark}",
        decided_at=at,
    )


def _as_dialect(found: NegotiatedDialect, at: Instant, probes: tuple[DialectProbe, ...]) -> Dialect:
    return Dialect(
        protocol=found.protocol,
        url=found.url,
        evidence=found.evidence,
        decided_at=at,
        card_etag=found.card_etag,
        card_url=found.card_url,
        card_digest=found.card_digest,
        streams=found.streams,
        pushes=found.pushes,
        skills=found.skills,
        details=found.details,
        tenant=found.tenant,
        tried=probes[-_MAX_PROBES:],
    )


def _alternative(fresh: Dialect, offer: ProtocolOffer, refused: Dialect) -> Dialect:
    """Another dialect than the one that the agent's card prefers."""
    return msgspec.structs.replace(
        fresh,
        protocol=offer.protocol,
        url=offer.url,
        tenant=offer.tenant,
        streams=fresh.streams or offer.streams,
        evidence=f"The agent refused {refused.protocol}, and {offer.because}.",
    )


def _note_unavailable(exc: Unavailable) -> None:
    log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
