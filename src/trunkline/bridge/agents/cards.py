"""Fetches agent cards, one address at a time."""

from __future__ import annotations

from time import perf_counter

from trunkline.agents.authentication.auth_config import Credentials
from trunkline.bridge.agents.tokens import TokenProvider
from trunkline.bridge.wire.exchanges import AuxiliaryRecorder, AuxiliaryRequest, SentRequest
from trunkline.clock import Clock
from trunkline.protocols import AgentAnswer, CardFetch
from trunkline.telemetry.redaction import Redaction
from trunkline.transports.base import Transport, TransportError

_CARD_SECONDS = 5.0
# A longer one is not a tag but an attempt to fill the database.
_MAX_ETAG_CHARACTERS = 256


class CardFetcher:
    def __init__(self, transport: Transport, clock: Clock, tokens: TokenProvider) -> None:
        self._transport = transport
        self._tokens = tokens
        self._clock = clock

    async def fetch(
        self,
        url: str,
        credentials: Credentials,
        *,
        etag: str | None = None,
        note: AuxiliaryRecorder | None = None,
    ) -> CardFetch:
        """
        With the `etag` of a known card the agent may answer 304.

        Raises `TransportError` where the agent was certainly not reached: that says nothing about its card.
        """
        headers = {"Accept": "application/json", "A2A-Version": "1.0", **credentials.headers}
        if etag is not None:
            headers["If-None-Match"] = etag
        redaction = Redaction(credentials)
        sent = SentRequest("GET", credentials.add_to(url), headers)
        started_at, started = self._clock.now(), perf_counter()
        answer, failed = await self._get(sent.url, headers, credentials, redaction, note)
        failure = None if failed is None else failed.message
        if note is not None:
            note(
                AuxiliaryRequest(
                    kind="card",
                    redaction=redaction,
                    sent=sent,
                    answer=answer,
                    started_at=started_at,
                    duration_ms=round((perf_counter() - started) * 1000, 3),
                    error=failure,
                )
            )
        if failed is not None and not failed.sent:
            raise TransportError(failed.code, redaction.text(failed.message))
        if answer is None or failure is not None:
            return CardFetch(url=url, failure=redaction.text(failure or ""))
        tag = answer.headers.get("etag")
        return CardFetch(
            url=url,
            status=answer.status,
            body=answer.body,
            etag=tag if tag is not None and len(tag) <= _MAX_ETAG_CHARACTERS else None,
        )

    async def _get(
        self,
        url: str,
        headers: dict[str, str],
        credentials: Credentials,
        redaction: Redaction,
        note: AuxiliaryRecorder | None,
    ) -> tuple[AgentAnswer | None, TransportError | None]:
        try:
            headers |= await self._tokens.headers(credentials, redaction, _CARD_SECONDS, note)
            answer = await self._transport.get(url, headers, _CARD_SECONDS, credentials.tls)
        except TransportError as exc:
            return exc.partial, exc
        return answer, None
