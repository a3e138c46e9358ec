"""
Tasks that wait for the same agent, sent in one request where its `protocol_config.batch` asks for it.

Requests to the same address with the same credentials wait for one another, up to `wait_ms` or until there are
`max` of them. Each gets its own answer, its own failure and its own timeout; one that is given up leaves the
others where they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import structlog

from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.protocols import AgentAnswer
from trunkline.protocols.json_rpc.batches import (
    BatchLimits,
    is_call,
    join_requests,
    request_id,
    split_answers,
)
from trunkline.telemetry import log_events
from trunkline.transports.base import Transport, TransportError
from trunkline.transports.failures import timed_out

# Some servers refuse more than 100 kB, and would refuse a batch whose requests they would all take.
_MAX_BATCH_BYTES = 90_000
_CORRELATION = "X-Correlation-ID"
# What a request says of its own task; the first one of a batch speaks for all.
_OF_ONE_TASK = frozenset({_CORRELATION.lower(), "traceparent", "tracestate"})

log = structlog.get_logger()

_Key = tuple[str, frozenset[tuple[str, str]], TlsConfig | None]


class _BatchedRequest:
    """One request that waits for its answer."""

    def __init__(self, body: bytes, headers: Mapping[str, str], seconds: float) -> None:
        self.id = request_id(body)
        self.body = body
        self.headers = headers
        self.timeout_seconds = seconds
        self.answer: asyncio.Future[AgentAnswer] = asyncio.get_running_loop().create_future()


class _OpenBatch:
    def __init__(self, url: str, tls: TlsConfig | None) -> None:
        self.url = url
        self.tls = tls
        self.waiting: list[_BatchedRequest] = []
        self.size = 0
        self.timer: asyncio.TimerHandle | None = None
        self.sending: asyncio.Task[None] | None = None

    def has_room_for(self, request: _BatchedRequest, most: int) -> bool:
        # The same id twice could not be told apart in the answer.
        is_new = all(other.id != request.id for other in self.waiting)
        return is_new and len(self.waiting) < most and self.size + len(request.body) <= _MAX_BATCH_BYTES

    def add(self, request: _BatchedRequest) -> None:
        self.waiting.append(request)
        self.size += len(request.body)

    def unanswered(self) -> list[_BatchedRequest]:
        return [request for request in self.waiting if not request.answer.done()]


class BatchSender:
    """Sends requests together. Used as a context, which ends when the last one has its answer."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._open: dict[_Key, _OpenBatch] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        # No task group: whatever else has gone wrong is to be told as it is.
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def post(
        self,
        limits: BatchLimits | None,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - as in a transport, whose place this takes
        tls: TlsConfig | None = None,
    ) -> AgentAnswer:
        """As `Transport.post`; with `limits` the request may be sent together with others."""
        if limits is None or not is_call(body):
            return await self._transport.post(url, body, headers, timeout, tls)
        request = _BatchedRequest(body, headers, timeout)
        batch = self._join(limits, url, request, tls)
        try:
            async with asyncio.timeout(timeout):
                return await request.answer
        except TimeoutError as exc:
            raise timed_out(timeout, None) from exc
        finally:
            if batch.sending is not None and not batch.unanswered():
                batch.sending.cancel()

    def _join(
        self, limits: BatchLimits, url: str, request: _BatchedRequest, tls: TlsConfig | None
    ) -> _OpenBatch:
        shared = (
            (name, value) for name, value in request.headers.items() if name.lower() not in _OF_ONE_TASK
        )
        key: _Key = (url, frozenset(shared), tls)
        batch = self._open.get(key)
        if batch is not None and not batch.has_room_for(request, limits.max):
            self._send(key)
            batch = None
        if batch is None:
            batch = self._open[key] = _OpenBatch(url, tls)
            wait = limits.wait_ms / 1000
            batch.timer = asyncio.get_running_loop().call_later(wait, self._send, key)
        batch.add(request)
        if len(batch.waiting) == limits.max:
            self._send(key)
        return batch

    def _send(self, key: _Key) -> None:
        batch = self._open.pop(key)
        if batch.timer is not None:
            batch.timer.cancel()
        if batch.unanswered():
            batch.sending = asyncio.get_running_loop().create_task(
                self._send_batch(batch, batch.unanswered())
            )
            self._under_way.add(batch.sending)
            batch.sending.add_done_callback(self._under_way.discard)

    async def _send_batch(self, batch: _OpenBatch, sent: list[_BatchedRequest]) -> None:
        try:
            answer = await self._transport.post(
                batch.url,
                join_requests([request.body for request in sent]),
                _headers(sent),
                max(request.timeout_seconds for request in sent),
                batch.tls,
            )
        except TransportError as exc:
            for request in batch.unanswered():
                request.answer.set_exception(TransportError(exc.code, exc.message, partial=exc.partial))
            return
        _distribute(answer, sent)


def _headers(sent: list[_BatchedRequest]) -> dict[str, str]:
    correlations = dict.fromkeys(
        request.headers[_CORRELATION] for request in sent if request.headers.get(_CORRELATION)
    )
    headers = dict(sent[0].headers)
    if correlations:
        headers[_CORRELATION] = ", ".join(correlations)
    return headers


def _distribute(answer: AgentAnswer, sent: list[_BatchedRequest]) -> None:
    brought = split_answers(answer, [request.id for request in sent])
    for note in brought.notes:
        log.warning(log_events.AGENT_WARNING, warning=note)
    for request, own in zip(sent, brought.answers, strict=True):
        if request.answer.done():
            continue
        if own is not None:
            request.answer.set_result(own)
        else:
            message = f"The agent answered a batch of {len(sent)} requests, but not this one."
            request.answer.set_exception(TransportError("agent_batch_answer_missing", message))
