"""
Carries one task's requests to its agent, one exchange at a time: encode, send, decode, record, count, log.

What the exchanges mean for the task is decided by the session (session.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from copy import copy
from time import perf_counter
from typing import Literal, TypeAlias, TypeVar

import structlog

from trunkline.bridge.agents.resolver import ResolvedAgent
from trunkline.bridge.calls.context import CallContext
from trunkline.bridge.calls.recording import ExchangeRecorder, keep_whole
from trunkline.bridge.calls.results import task_log
from trunkline.bridge.calls.spans import note_answer, start_call_span
from trunkline.bridge.calls.streams import EVENT_STREAM, AgentStreamReader, StreamResult, StreamTimeout
from trunkline.bridge.wire.exchanges import ExchangeKind, SentRequest, WholeBody
from trunkline.bridge.wire.secret_redaction import redact_failure, redact_outcome, redact_push_target
from trunkline.bridge.wire.stream_frames import StreamFrameRecorder
from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.jsontypes import Json, encode
from trunkline.messages import AgentTask, StepError, fix_for
from trunkline.protocols import (
    AgentAnswer,
    AgentRequest,
    Failed,
    Interrupted,
    Outcome,
    ProtocolTranslationError,
    SendOptions,
    StreamUpdate,
    Succeeded,
    Working,
    failure_of,
)
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.redaction import Redaction
from trunkline.telemetry.traces import trace_headers
from trunkline.transports.base import StreamedAnswer, StreamLimits, TransportError

_MALFORMED = "agent_answer_malformed"
_CANCELLED = "Trunkline stopped the call before the answer was complete."
# The whole of a body is in the wire record.
_LOGGED_BYTES = 4_096
# Of one stream, event by event; each of them may be as long as a whole answer.
_MAX_STREAM_BYTES = 64 * 1024 * 1024

_Read = TypeVar("_Read")

# No run waits for the answer of such a call.
Detached: TypeAlias = Literal["shadow", "trial"]


class TaskTranslator:
    """One task in one agent's dialect: encoded and decoded, with the log lines and the metrics of that."""

    def __init__(
        self,
        task: AgentTask,
        agent: ResolvedAgent,
        metrics: Metrics,
        logger: structlog.stdlib.BoundLogger,
        given_input: Json,
    ) -> None:
        """`given_input` is the task's input without the values of secrets."""
        self._task = task
        self._given_input = given_input
        self._agent = agent
        self._metrics = metrics
        self._log = logger
        # What is logged of each message is not worth preparing for a line that is not written.
        self._debugs = logger.is_enabled_for(logging.DEBUG)

    def encode(self, options: SendOptions, *, streamed: bool) -> AgentRequest | Failed:
        """The task as a request; for a stream where that is wanted and the dialect has one."""
        agent = self._agent
        started = perf_counter()
        try:
            request = agent.adapter.encode_stream(self._task) if streamed else None
            request = request or agent.adapter.encode(self._task, options)
        except ProtocolTranslationError as exc:
            return self.failed(exc, b"")
        self._metrics.translation_seconds.labels(agent.protocol, "request").observe(perf_counter() - started)
        if self._debugs:
            self._log.debug(
                log_events.PROTOCOL_REQUEST_TRANSLATION,
                protocol=agent.protocol,
                input_size=len(encode(self._given_input)),
                request=_LoggedBody(agent.redaction, redact_push_target(request.body, options.push)),
            )
        return request

    def decode(self, answer: AgentAnswer) -> Outcome:
        agent = self._agent
        if self._debugs:
            self._log.debug(
                log_events.PROTOCOL_RESPONSE_TRANSLATION,
                protocol=agent.protocol,
                response_size=len(answer.body),
                http_status=answer.status,
                response=_LoggedBody(agent.redaction, answer.body),
            )
        started = perf_counter()
        try:
            outcome = redact_outcome(agent.adapter.decode(answer, self._task), agent.redaction)
        except ProtocolTranslationError as exc:
            return self.failed(exc, answer.body)
        self._metrics.translation_seconds.labels(agent.protocol, "response").observe(perf_counter() - started)
        return outcome

    def decode_found(self, answer: AgentAnswer) -> str | Failed | None:
        try:
            return self._agent.adapter.decode_find(answer, self._task)
        except ProtocolTranslationError as exc:
            return self.failed(exc, answer.body)

    def failed(self, exc: ProtocolTranslationError, body: bytes) -> Failed:
        agent = self._agent
        self._metrics.translation_errors.labels(agent.protocol, exc.direction, exc.code).inc()
        self._log.error(
            log_events.PROTOCOL_TRANSLATION_ERROR,
            protocol=agent.protocol,
            direction=exc.direction,
            error=agent.redaction.text(str(exc)),
            data=_LoggedBody(agent.redaction, body),
        )
        return redact_failure(failure_of(exc), agent.redaction)

    def log_outcome(self, answer: AgentAnswer | None, outcome: Outcome) -> None:
        agent = self._agent
        match outcome:
            case Succeeded():
                self._log.info(
                    log_events.OUTPUT_EXTRACTED,
                    protocol=agent.protocol,
                    output=_LoggedBody(agent.redaction, outcome.output),
                )
                self._log_warnings(outcome.warnings)
            case Failed():
                self._log_warnings(outcome.warnings)
                self._log.error(
                    log_events.CALL_FAILED,
                    protocol=agent.protocol,
                    code=outcome.error.code,
                    error=outcome.error.message,
                    http_status=outcome.error.http_status,
                    data=_LoggedBody(agent.redaction, answer.body if answer is not None else b""),
                )
            case Interrupted() | Working():
                pass

    def _log_warnings(self, warnings: tuple[str, ...]) -> None:
        for warning in warnings:
            self._log.warning(log_events.AGENT_WARNING, protocol=self._agent.protocol, warning=warning)


class AgentClient:
    def __init__(
        self,
        context: CallContext,
        task: AgentTask,
        agent: ResolvedAgent,
        recorder: ExchangeRecorder,
        detached: Detached | None,
    ) -> None:
        self._context = context
        self._recorder = recorder
        # As it is encoded; what is kept and shown of it is the other one.
        self._task = copy(task if recorder.secrets is None else recorder.secrets.filled)
        self._given_input = task.input_data
        self._is_detached = detached is not None
        # Of the request in progress; without our own spans, the caller's.
        self._trace = task.trace
        self._has_renewed_token = False
        self._detached: Detached | None = detached
        self._log = task_log(task).bind(**{detached: True}) if detached else task_log(task)
        self.agent = agent
        self._translator = TaskTranslator(self._task, agent, context.metrics, self._log, task.input_data)

    def switch_to(self, agent: ResolvedAgent) -> None:
        """The same agent in another dialect."""
        self.agent = agent
        self._translator = TaskTranslator(
            self._task, agent, self._context.metrics, self._log, self._given_input
        )

    def encode(self, options: SendOptions, *, streamed: bool) -> AgentRequest | Failed:
        request = self._translator.encode(options, streamed=streamed)
        if isinstance(request, AgentRequest):
            self._recorder.push_target = options.push
        return request

    async def exchange(self, request: AgentRequest, seconds: float, kind: ExchangeKind = "send") -> Outcome:
        """Sends the request once; what the answer means, or why there is none."""
        _count_request(self._context, self.agent, self._detached)
        answer, outcome = await self._send(request, seconds, kind, self._translator.decode)
        self._translator.log_outcome(answer, outcome)
        return outcome

    def encode_poll(self, remote_task_id: str, polls: int) -> AgentRequest | None:
        """How the agent's task is asked for, so many polls after the message; the next answer is read as its answer."""
        self._task.polls = polls
        return self.agent.adapter.encode_poll(self._task, remote_task_id)

    async def find(self, request: AgentRequest, seconds: float) -> str | Failed | None:
        """The agent's own id of this task, if it has it; None: it says that it has not."""
        _, found = await self._send(request, seconds, "find", self._translator.decode_found)
        return found

    async def request_cancel(
        self, request: AgentRequest, seconds: float, kind: ExchangeKind = "cancel"
    ) -> Outcome:
        """Asks the agent to end its task; that the task has ended without success is what was asked for."""
        _, outcome = await self._send(request, seconds, kind, self._translator.decode)
        if isinstance(outcome, Failed) and outcome.error.code != "agent_task_failed":
            self._log.warning(
                log_events.CANCEL_NOT_CONFIRMED,
                protocol=self.agent.protocol,
                code=outcome.error.code,
                error=outcome.error.message,
            )
        return outcome

    # --- one answer

    async def _send(
        self,
        request: AgentRequest,
        seconds: float,
        kind: ExchangeKind,
        read: Callable[[AgentAnswer], _Read],
    ) -> tuple[AgentAnswer | None, _Read | Failed]:
        """Carries one request to the agent; what `read` makes of the answer, or why there is none."""
        if not self._context.traces.are_on:
            return await self._send_once(request, seconds, kind, read)
        with start_call_span(self._context.traces, self._task, self.agent, kind, request) as span:
            self._trace = span.trace
            answer, outcome = await self._send_once(request, seconds, kind, read)
            note_answer(span, answer, outcome)
        return answer, outcome

    async def _send_once(
        self,
        request: AgentRequest,
        seconds: float,
        kind: ExchangeKind,
        read: Callable[[AgentAnswer], _Read],
    ) -> tuple[AgentAnswer | None, _Read | Failed]:
        agent, context = self.agent, self._context
        self._log.info(log_events.HTTP_CALL, protocol=agent.protocol)
        headers = self._headers(request)
        sent = SentRequest("POST" if request.body else "GET", agent.url(request), headers, request.body)
        started_at, started = context.clock.now(), perf_counter()
        tls = agent.credentials.tls
        try:
            if agent.needs_token:
                headers |= await agent.token_headers(seconds, self._recorder.add_auxiliary, request.body)
                # It may have had to be fetched first: that is an exchange of its own.
                started_at, started = context.clock.now(), perf_counter()
            if not request.body:
                answer = await context.transport.get(sent.url, headers, seconds, tls)
            elif agent.batch is None:
                answer = await context.transport.post(sent.url, request.body, headers, seconds, tls)
            else:
                answer = await context.batches.post(
                    agent.batch, sent.url, request.body, headers, seconds, tls
                )
        except TransportError as exc:
            self._record(sent, exc.partial, started_at, started, error=exc.message, kind=kind)
            message = agent.redaction.text(exc.message)
            status = exc.partial.status if exc.partial is not None else None
            error = StepError(code=exc.code, message=message, fix=fix_for(exc.code), http_status=status)
            return exc.partial, Failed(error=error)
        except asyncio.CancelledError:
            self._record(sent, None, started_at, started, error=_CANCELLED, kind=kind)
            raise
        outcome = read(answer)
        whole = await self._keep_malformed(answer, outcome)
        self._record(sent, answer, started_at, started, notes=_notes(outcome), kind=kind, whole=whole)
        if self._gets_another_token(answer, headers):
            left = seconds - (perf_counter() - started)
            return await self._send_once(request, left, kind, read)
        return answer, outcome

    def _gets_another_token(self, answer: AgentAnswer, headers: Mapping[str, str]) -> bool:
        """Whether the agent has refused its token, and so has not taken the request; once in a call."""
        if self._has_renewed_token or answer.status != 401:
            return False
        self._has_renewed_token = self.agent.tokens.discard(self.agent.credentials, headers)
        return self._has_renewed_token

    def _headers(self, request: AgentRequest) -> dict[str, str]:
        headers = {**self.agent.headers, "X-Correlation-ID": self._task.correlation_id, **request.headers}
        if self._trace is not None:
            headers |= trace_headers(self._trace)
        return headers

    async def _keep_malformed(self, answer: AgentAnswer, read: object) -> WholeBody | None:
        """A malformed answer that is too long for the wire record is kept whole; None: it is not."""
        limits = self._context.limits
        is_malformed = isinstance(read, Failed) and read.error.code == _MALFORMED
        if not is_malformed or self._is_detached or len(answer.body) <= limits.max_wire_bytes:
            return None
        return await keep_whole(
            self._context.blobs,
            RunId(self._task.run_id),
            self._recorder.without_push_target(answer.body),
            self.agent.redaction,
            limits.max_body_bytes,
        )

    def _record(
        self,
        sent: SentRequest,
        answer: AgentAnswer | None,
        started_at: Instant,
        started: float,
        *,
        kind: ExchangeKind,
        error: str | None = None,
        notes: tuple[str, ...] = (),
        frames: StreamFrameRecorder | None = None,
        whole: WholeBody | None = None,
    ) -> None:
        self._recorder.add(
            self.agent.redaction,
            sent,
            answer,
            started_at=started_at,
            duration_ms=round((perf_counter() - started) * 1000, 3),
            kind=kind,
            error=error,
            notes=notes,
            frames=frames,
            whole=whole,
        )

    # --- a stream

    async def stream(
        self,
        request: AgentRequest,
        seconds: float,
        stream_timeout: StreamTimeout,
        on_event: Callable[[StreamUpdate], None],
        *,
        remote_task_id: str | None = None,
    ) -> StreamResult:
        """
        Sends the request once and reads the answer until `stream_timeout` expires; `on_event` gets every event.

        An agent may answer with one whole answer instead: that is taken as such.
        """
        if not self._context.traces.are_on:
            _, result = await self._stream(request, seconds, stream_timeout, on_event, remote_task_id)
            return result
        with start_call_span(self._context.traces, self._task, self.agent, "stream", request) as span:
            self._trace = span.trace
            answer, result = await self._stream(request, seconds, stream_timeout, on_event, remote_task_id)
            note_answer(span, answer, result.outcome)
        return result

    async def _stream(
        self,
        request: AgentRequest,
        seconds: float,
        stream_timeout: StreamTimeout,
        on_event: Callable[[StreamUpdate], None],
        remote_task_id: str | None,
    ) -> tuple[AgentAnswer | None, StreamResult]:
        agent, context = self.agent, self._context
        _count_request(self._context, self.agent, self._detached)
        self._log.info(log_events.HTTP_CALL, protocol=agent.protocol)
        headers = {**self._headers(request), "Accept": EVENT_STREAM}
        sent = SentRequest("POST" if request.body else "GET", agent.url(request), headers, request.body)
        started_at, started = context.clock.now(), perf_counter()
        frames = StreamFrameRecorder(agent.redaction, max_bytes=self._recorder.max_wire_bytes)
        reader = AgentStreamReader(
            agent.adapter.read_stream(self._task),
            agent.redaction,
            on_event,
            stream_timeout,
            frames=frames,
            remote_task_id=remote_task_id,
            max_bytes=context.limits.max_answer_bytes,
        )
        limits = StreamLimits(
            first_seconds=seconds, idle_seconds=seconds, total_seconds=seconds, total_bytes=_MAX_STREAM_BYTES
        )
        answer: AgentAnswer | None = None
        try:
            async with stream_timeout, self._open_stream(sent, headers, limits) as opened:
                streamed, started_at, started = opened
                if not _is_event_stream(streamed):
                    answer = await self._read_whole(streamed)
                    result = StreamResult(outcome=self._translator.decode(answer))
                else:
                    answer = AgentAnswer(streamed.status, streamed.headers, b"")
                    result = await reader.read(streamed)
        except TimeoutError:
            result = reader.timed_out()
        except TransportError as exc:
            answer = exc.partial
            result = reader.interrupted(exc.code, exc.message)
        except asyncio.CancelledError:
            self._record(sent, answer, started_at, started, error=_CANCELLED, kind="stream", frames=frames)
            raise
        if result.translation_error is not None:
            self._translator.failed(result.translation_error, answer.body if answer is not None else b"")
        notes = _notes(result.outcome) if result.problem is None else ()
        whole = None if answer is None else await self._keep_malformed(answer, result.outcome)
        self._record(
            sent,
            answer,
            started_at,
            started,
            error=result.problem,
            notes=notes,
            kind="stream",
            frames=frames,
            whole=whole,
        )
        self._translator.log_outcome(answer, result.outcome)
        return answer, result

    @asynccontextmanager
    async def _open_stream(
        self, sent: SentRequest, headers: dict[str, str], limits: StreamLimits
    ) -> AsyncGenerator[tuple[StreamedAnswer, Instant, float]]:
        """The answer, and when its request left: a token may have had to be fetched first."""
        agent, context = self.agent, self._context
        while True:
            headers |= await agent.token_headers(
                limits.first_seconds, self._recorder.add_auxiliary, sent.body
            )
            started_at, started = context.clock.now(), perf_counter()
            stream = context.transport.stream(
                sent.url, sent.body or None, headers, limits, agent.credentials.tls
            )
            async with stream as streamed:
                answer = AgentAnswer(streamed.status, streamed.headers, b"")
                if not self._gets_another_token(answer, headers):
                    yield streamed, started_at, started
                    return
            self._record(sent, answer, started_at, started, kind="stream")

    async def _read_whole(self, streamed: StreamedAnswer) -> AgentAnswer:
        limit = self._context.limits.max_answer_bytes
        body = bytearray()
        async for chunk in streamed.chunks():
            body += chunk
            if len(body) > limit:
                raise TransportError(
                    "agent_answer_too_large", f"The agent's answer is larger than {limit} bytes."
                )
        return AgentAnswer(streamed.status, streamed.headers, bytes(body))


def _notes(read: object) -> tuple[str, ...]:
    """What an operator should know of an answer: what is odd about it, and what it was taken for."""
    match read:
        case Succeeded():
            return read.warnings
        case Failed():
            return (*read.warnings, read.error.message)
        case _:
            return ()


def _is_event_stream(answer: StreamedAnswer) -> bool:
    return answer.status < 300 and answer.headers.get("content-type", "").lower().startswith(EVENT_STREAM)


class _LoggedBody:
    """A body as a log line may show it; made only when the line is written."""

    __slots__ = ("_body", "_redaction")

    def __init__(self, redaction: Redaction, body: bytes) -> None:
        self._redaction = redaction
        self._body = body

    def __repr__(self) -> str:
        margin = self._redaction.longest
        piece = self._body[: _LOGGED_BYTES + margin]
        text = self._redaction.text(piece.decode("utf-8", "replace"))
        # The edge of a piece may hold half a secret, and what was redacted before has moved it forward.
        whole = text if len(piece) == len(self._body) else text[: len(text) - margin]
        return whole[:_LOGGED_BYTES]


def _count_request(context: CallContext, agent: ResolvedAgent, detached: Detached | None) -> None:
    metrics, name = context.metrics, agent.agent.name
    if detached is None:
        metrics.protocol_requests.labels(agent.protocol, name).inc()
    else:
        # No run waits for it, so it says nothing about the load of runs.
        metrics.detached_requests.labels(agent.protocol, name, detached).inc()
