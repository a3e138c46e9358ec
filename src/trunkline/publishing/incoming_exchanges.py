"""
The wire records of callers' requests: what a caller has sent for a task, and what it was answered.

Recorded are the messages that have started a task or answered its question, and the first request to cancel it. What
only reads is not: a caller can poll for as long as a task lasts. Keys, tokens and credentials are redacted. A record is
written before the response is sent, together with those of other callers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.event_streams import ByteStream
from trunkline.bridge.wire.exchanges import SentRequest, encode_exchange, record_exchange
from trunkline.clock import Clock, Instant
from trunkline.errors import Unavailable
from trunkline.ids import RunId
from trunkline.protocols.base import AgentAnswer
from trunkline.stores.base import ExchangeRecord, Store
from trunkline.telemetry import log_events
from trunkline.telemetry.redaction import Redaction

log = structlog.stdlib.get_logger()

_EVENTS_FOLLOW = (
    "The response is a stream of the updates of the task. They follow from the events of the run."
)
_HAS_LEFT = "The caller has disconnected before it was answered."


class UnsentResponse(Response):
    """The caller has disconnected: nobody gets it."""


_IN_SCOPE = "trunkline.incoming_exchange"


class IncomingExchange(msgspec.Struct, kw_only=True):
    """A request that is being answered."""

    started_at: Instant
    started: float
    body: bytes = b""
    # None: it concerns no task, or only reads.
    run_id: RunId | None = None
    # Whose question it answers; empty: it has started the task, or cancels it.
    step: str = ""
    attempt: int = 0
    secrets: Sequence[str] = ()


def exchange_of(request: Request) -> IncomingExchange:
    found: IncomingExchange = request.scope[_IN_SCOPE]
    return found


class IncomingExchanges:
    """Writes records. Those of requests that are answered at the same time share a transaction."""

    def __init__(self, store: Store, clock: Clock, max_wire_bytes: int) -> None:
        self._store = store
        self._clock = clock
        self._max_wire_bytes = max_wire_bytes
        self._pending: list[ExchangeRecord] = []
        self._writing: asyncio.Task[None] | None = None
        # Starts when the writing before it has ended, and takes everything that is pending by then.
        self._next: asyncio.Task[None] | None = None

    def begin(self, request: Request) -> None:
        request.scope[_IN_SCOPE] = IncomingExchange(started_at=self._clock.now(), started=perf_counter())

    async def end(self, request: Request, response: Response) -> None:
        """Does nothing for a request that is not recorded."""
        exchange = exchange_of(request)
        if exchange.run_id is None:
            return
        self._pending.append(self._record(exchange, exchange.run_id, request, response))
        if self._next is None:
            self._next = asyncio.create_task(self._write_after(self._writing))
        # Others wait for the same transaction.
        await asyncio.shield(self._next)

    async def _write_after(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        self._writing, self._next = self._next, None
        records, self._pending = self._pending, []
        try:
            # A crash may lose the record of a request that has no response yet.
            async with self._store.transaction(durable=False) as tx:
                await tx.exchanges.put(records)
        except Unavailable as exc:
            # The request itself is stored; a record is not worth refusing it.
            log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)

    def _record(
        self, exchange: IncomingExchange, run_id: RunId, request: Request, response: Response
    ) -> ExchangeRecord:
        redaction = Redaction.of(*exchange.secrets)
        notes: list[str] = []
        if isinstance(response, ByteStream):
            notes.append(_EVENTS_FOLLOW)
        has_left = isinstance(response, UnsentResponse)
        body = b"" if isinstance(response, ByteStream) else bytes(response.body)
        recorded = record_exchange(
            redaction,
            SentRequest(request.method, str(request.url), dict(request.headers), exchange.body),
            None if has_left else AgentAnswer(response.status_code, dict(response.headers), body),
            step=exchange.step,
            attempt=exchange.attempt,
            started_at=exchange.started_at,
            duration_ms=round((perf_counter() - exchange.started) * 1_000, 3),
            error=_HAS_LEFT if has_left else None,
            notes=notes,
            kind="caller",
            max_bytes=self._max_wire_bytes,
        )
        return ExchangeRecord(run_id, exchange.step, exchange.attempt, encode_exchange(recorded))
