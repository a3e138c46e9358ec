"""An agent's card as it is now, for people to read; nothing is decided or kept by it."""

from __future__ import annotations

from trunkline.agents import Agent
from trunkline.agents.cards import MAX_CARD_BYTES
from trunkline.bridge.card_reader import CardFetcher
from trunkline.bridge.dialects import reads_card
from trunkline.bridge.partners import AgentResolver
from trunkline.bridge.tokens import TokenProvider
from trunkline.clock import Clock
from trunkline.messages import StepError
from trunkline.protocols import CardFetch, answer_of, next_card_url
from trunkline.protocols.answer_json import NotJson, parse
from trunkline.services.cards import CardView
from trunkline.transports.base import Transport, TransportError

_HAS_NONE = "Its calls do not depend on a card, so nobody looks for one."


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
        detail = redaction.text(answer_of(last))
        shown = redaction.url(last.url)
        if last.status != 200 or len(last.body) > MAX_CARD_BYTES:
            return CardView(asked_at=asked_at, url=shown, detail=detail)
        try:
            card = parse(redaction.text(last.body.decode("utf-8", "replace")).encode())
        except NotJson as exc:
            return CardView(asked_at=asked_at, url=shown, detail=str(exc))
        return CardView(asked_at=asked_at, url=shown, detail=detail, card=card, digest=last.digest)
