"""
One claimed task's talk with its agent: send, record, count, log, translate.

What leaves and what comes back is recorded here, and nowhere else: `runs wire` shows all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Literal, TypeVar

from msgspec.structs import replace

from trunkline.bridge.agents.resolver import ResolvedAgent
from trunkline.bridge.calls.batches import BatchSender
from trunkline.bridge.calls.results import task_log
from trunkline.bridge.calls.spans import note_answer, start_call_span
from trunkline.bridge.calls.streams import EVENT_STREAM, AgentStreamReader, StreamResult, StreamTimeout
from trunkline.bridge.calls.task_secrets import TaskSecrets
from trunkline.bridge.wire.exchanges import (
    AuxiliaryRequest,
    ExchangeKind,
    SentRequest,
    encode_exchange,
    record_exchange,
)
from trunkline.bridge.wire.secret_redaction import redact_failure, redact_outcome, redact_push_target
from trunkline.bridge.wire.stream_frames import StreamFrames
from trunkline.clock import Clock, Instant
from trunkline.ids import RunId
from trunkline.messages import StepError, fix_for
from trunkline.protocols import (
    AgentAnswer,
    AgentRequest,
    Failed,
    Interrupted,
    Outcome,
    ProtocolTranslationError,
    PushTarget,
    SendOptions,
    StreamUpdate,
    Succeeded,
    Working,
    failure_of,
)
from trunkline.stores.base import ClaimedTask, ExchangeRecord
from trunkline.telemetry import names
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.redaction import Redaction
from trunkline.telemetry.traces import Traces, trace_headers
from trunkline.transports.base import (
    SECRETS_SENT,
    StreamedAnswer,
    StreamLimits,
    Transport,
    TransportError,
)

_CANCELLED = "Trunkline broke the call off before the answer was complete."
# The whole of a body is in the wire record.
_LOGGED_BYTES = 4_096
# Of one stream, event by event; each of them may be as long as a whole answer.
_MAX_STREAM_BYTES = 64 * 1024 * 1024

# Exchanges whose request has the task's input in it.
_CARRIES_INPUT = frozenset({"send", "stream"})

_Read = TypeVar("_Read")


class AgentSession:
    def __init__(
        self,
        transport: Transport,
        batches: BatchSender,
        clock: Clock,
        metrics: Metrics,
        traces: Traces,
        claim: ClaimedTask,
        most_bytes: int,
        most_wire_bytes: int,
        *,
        notes: tuple[str, ...] = (),
        beside: Literal["shadow", "trial"] | None = None,
    ) -> None:
        """`notes` are for the record of every request to the agent; `beside`: no run waits for its answer."""
        self._transport = transport
        self._batches = batches
        self._clock = clock
        self._metrics = metrics
        self._traces = traces
        self._task = claim.task
        # Of the request that is under way.
        self._trace = claim.task.trace
        self._max_answer_bytes = most_bytes
        self._max_wire_bytes = most_wire_bytes
        self._route_notes = notes
        self._has_renewed_token = False
        # Where the agent may ring: for it alone to know.
        self._push_target: PushTarget | None = None
        self._secrets: TaskSecrets | None = None
        self.exchanges: list[ExchangeRecord] = []
        self.detached = beside
        self._log = task_log(claim.task).bind(**{beside: True}) if beside else task_log(claim.task)

    def attach_secrets(self, secrets: TaskSecrets) -> None:
        """From here on the task is sent with its secrets; `hiding` makes partners whose records do not show them."""
        self._secrets = secrets
        self._task = secrets.filled
        SECRETS_SENT.set(secrets.hidden)

    def with_secrets_hidden(self, resolved: ResolvedAgent) -> ResolvedAgent:
        """The partner for this talk alone: it must not be kept."""
        if self._secrets is None:
            return resolved
        # In a batch the others' records would have to hide them too.
        return replace(resolved, redaction=resolved.redaction.with_secrets(self._secrets.hidden), batch=None)

    def without_secrets(self, exc: Exception) -> Exception:
        """The same mistake of ours, in words without the secrets of the call."""
        if self._secrets is None:
            return exc
        told = Redaction().with_secrets(self._secrets.hidden).text(f"{type(exc).__name__}: {exc}")
        return RuntimeError(told).with_traceback(exc.__traceback__)

    def encode(
        self, resolved: ResolvedAgent, options: SendOptions, *, streamed: bool
    ) -> AgentRequest | Failed:
        """The task as a request; for a stream where that is wanted and the dialect has one."""
        started = perf_counter()
        try:
            request = resolved.adapter.encode_stream(self._task) if streamed else None
            request = request or resolved.adapter.encode(self._task, options)
        except ProtocolTranslationError as exc:
            return self._translation_failed(resolved, exc, b"")
        self._metrics.translation_seconds.labels(resolved.protocol, "request").observe(
            perf_counter() - started
        )
        self._log.debug(
            names.PROTOCOL_REQUEST_TRANSLATION,
            protocol=resolved.protocol,
            input_size=len(request.body),
            request=_LoggedBody(resolved, redact_push_target(request.body, options.push)),
        )
        self._push_target = options.push
        return request

    async def exchange(
        self, resolved: ResolvedAgent, request: AgentRequest, seconds: float, kind: ExchangeKind = "send"
    ) -> Outcome:
        """Sends the request once; what the answer means, or why there is none."""
        self._metrics.protocol_requests.labels(resolved.protocol, resolved.agent.name).inc()
        answer, outcome = await self._send_traced(resolved, request, seconds, kind, self._decode)
        self._note_outcome(resolved, answer, outcome)
        return outcome

    def _note_outcome(self, resolved: ResolvedAgent, answer: AgentAnswer | None, outcome: Outcome) -> None:
        match outcome:
            case Succeeded():
                self._log.info(
                    names.OUTPUT_EXTRACTED,
                    protocol=resolved.protocol,
                    output=_LoggedBody(resolved, outcome.output),
                )
                self._warn(resolved, outcome.warnings)
            case Failed():
                self._warn(resolved, outcome.warnings)
                self._log.error(
                    names.CALL_FAILED,
                    protocol=resolved.protocol,
                    code=outcome.error.code,
                    error=outcome.error.message,
                    http_status=outcome.error.http_status,
                    data=_LoggedBody(resolved, answer.body if answer is not None else b""),
                )
            case Interrupted() | Working():
                pass

    async def stream(
        self,
        resolved: ResolvedAgent,
        request: AgentRequest,
        seconds: float,
        patience: StreamTimeout,
        report: Callable[[StreamUpdate], None],
        *,
        remote_task_id: str | None = None,
    ) -> StreamResult:
        """
        Sends the request once and listens to the answer, for as long as `patience` has; `hear` is told every event.

        An agent may answer with one whole answer instead: that is taken as such.
        """
        with start_call_span(self._traces, self._task, resolved, "stream", request) as segment:
            self._trace = segment.trace
            answer, heard = await self._stream(resolved, request, seconds, patience, report, remote_task_id)
            note_answer(segment, self._traces, answer, heard.outcome)
        return heard

    async def _stream(
        self,
        resolved: ResolvedAgent,
        request: AgentRequest,
        seconds: float,
        patience: StreamTimeout,
        report: Callable[[StreamUpdate], None],
        remote_task_id: str | None,
    ) -> tuple[AgentAnswer | None, StreamResult]:
        self._metrics.protocol_requests.labels(resolved.protocol, resolved.agent.name).inc()
        self._log.info(names.HTTP_CALL, protocol=resolved.protocol)
        headers = {**self._headers(resolved, request), "Accept": EVENT_STREAM}
        sent = SentRequest("POST" if request.body else "GET", resolved.url(request), headers, request.body)
        started_at, started = self._clock.now(), perf_counter()
        frames = StreamFrames(resolved.redaction, most_bytes=self._max_wire_bytes)
        listener = AgentStreamReader(
            resolved.adapter.read_stream(self._task),
            resolved.redaction,
            report,
            patience,
            frames=frames,
            remote_task_id=remote_task_id,
            most_bytes=self._max_answer_bytes,
        )
        limits = StreamLimits(
            first_seconds=seconds, idle_seconds=seconds, total_seconds=seconds, total_bytes=_MAX_STREAM_BYTES
        )
        answer: AgentAnswer | None = None
        try:
            async with patience, self._open_stream(resolved, sent, headers, limits) as opened:
                streamed, started_at, started = opened
                if not _is_event_stream(streamed):
                    answer = await self._read_whole(streamed)
                    heard = StreamResult(outcome=self._decode(resolved, answer))
                else:
                    answer = AgentAnswer(streamed.status, streamed.headers, b"")
                    heard = await listener.read(streamed)
        except TimeoutError:
            heard = listener.timed_out()
        except TransportError as exc:
            answer = exc.partial
            heard = listener.interrupted(exc.code, exc.message)
        except asyncio.CancelledError:
            self._record(
                resolved, sent, answer, started_at, started, error=_CANCELLED, kind="stream", frames=frames
            )
            raise
        if heard.translation_error is not None:
            self._translation_failed(
                resolved, heard.translation_error, answer.body if answer is not None else b""
            )
        notes = _notes(heard.outcome) if heard.problem is None else ()
        self._record(
            resolved,
            sent,
            answer,
            started_at,
            started,
            error=heard.problem,
            notes=notes,
            kind="stream",
            frames=frames,
        )
        self._note_outcome(resolved, answer, heard.outcome)
        return answer, heard

    @asynccontextmanager
    async def _open_stream(
        self, resolved: ResolvedAgent, sent: SentRequest, headers: dict[str, str], limits: StreamLimits
    ) -> AsyncGenerator[tuple[StreamedAnswer, Instant, float]]:
        """The answer, and when its request left: a token may have had to be fetched first."""
        while True:
            headers |= await resolved.token_headers(limits.first_seconds, self.record_auxiliary, sent.body)
            started_at, started = self._clock.now(), perf_counter()
            stream = self._transport.stream(
                sent.url, sent.body or None, headers, limits, resolved.credentials.tls
            )
            async with stream as streamed:
                answer = AgentAnswer(streamed.status, streamed.headers, b"")
                if not self._gets_another_token(resolved, answer, headers):
                    yield streamed, started_at, started
                    return
            self._record(resolved, sent, answer, started_at, started, kind="stream")

    async def _read_whole(self, streamed: StreamedAnswer) -> AgentAnswer:
        body = bytearray()
        async for chunk in streamed.chunks():
            body += chunk
            if len(body) > self._max_answer_bytes:
                raise TransportError(
                    "agent_answer_too_large",
                    f"The agent's answer is larger than {self._max_answer_bytes} bytes.",
                )
        return AgentAnswer(streamed.status, streamed.headers, bytes(body))

    async def find(
        self, resolved: ResolvedAgent, request: AgentRequest, seconds: float
    ) -> str | Failed | None:
        """The agent's own id of this task, if it has it; None: it says that it has not."""
        _, found = await self._send_traced(resolved, request, seconds, "find", self._decode_found)
        return found

    def _decode_found(self, resolved: ResolvedAgent, answer: AgentAnswer) -> str | Failed | None:
        try:
            return resolved.adapter.decode_find(answer, self._task)
        except ProtocolTranslationError as exc:
            return self._translation_failed(resolved, exc, answer.body)

    async def request_cancel(
        self, resolved: ResolvedAgent, request: AgentRequest, seconds: float, kind: ExchangeKind = "cancel"
    ) -> Outcome:
        """Asks the agent to end its task; that the task has ended without success is what was asked for."""
        _, outcome = await self._send_traced(resolved, request, seconds, kind, self._decode)
        if isinstance(outcome, Failed) and outcome.error.code != "agent_task_failed":
            self._log.warning(
                names.CANCEL_NOT_CONFIRMED,
                protocol=resolved.protocol,
                code=outcome.error.code,
                error=outcome.error.message,
            )
        return outcome

    async def _send_traced(
        self,
        resolved: ResolvedAgent,
        request: AgentRequest,
        seconds: float,
        kind: ExchangeKind,
        read: Callable[[ResolvedAgent, AgentAnswer], _Read],
    ) -> tuple[AgentAnswer | None, _Read | Failed]:
        """Carries one request to the agent; what `read` makes of the answer, or why there is none."""
        with start_call_span(self._traces, self._task, resolved, kind, request) as segment:
            self._trace = segment.trace
            answer, outcome = await self._send_once(resolved, request, seconds, kind, read)
            note_answer(segment, self._traces, answer, outcome)
        return answer, outcome

    async def _send_once(
        self,
        resolved: ResolvedAgent,
        request: AgentRequest,
        seconds: float,
        kind: ExchangeKind,
        read: Callable[[ResolvedAgent, AgentAnswer], _Read],
    ) -> tuple[AgentAnswer | None, _Read | Failed]:
        self._log.info(names.HTTP_CALL, protocol=resolved.protocol)
        headers = self._headers(resolved, request)
        sent = SentRequest("POST" if request.body else "GET", resolved.url(request), headers, request.body)
        started_at = self._clock.now()
        started = perf_counter()
        tls = resolved.credentials.tls
        try:
            if resolved.needs_token:
                headers |= await resolved.token_headers(seconds, self.record_auxiliary, request.body)
                # It may have had to be fetched first: that is an exchange of its own.
                started_at, started = self._clock.now(), perf_counter()
            if request.body:
                answer = await self._batches.post(
                    resolved.batch, sent.url, request.body, headers, seconds, tls
                )
            else:
                answer = await self._transport.get(sent.url, headers, seconds, tls)
        except TransportError as exc:
            self._record(resolved, sent, exc.partial, started_at, started, error=exc.message, kind=kind)
            message = resolved.redaction.text(exc.message)
            status = exc.partial.status if exc.partial is not None else None
            error = StepError(code=exc.code, message=message, fix=fix_for(exc.code), http_status=status)
            return exc.partial, Failed(error=error)
        except asyncio.CancelledError:
            self._record(resolved, sent, None, started_at, started, error=_CANCELLED, kind=kind)
            raise
        outcome = read(resolved, answer)
        notes = _notes(outcome)
        self._record(resolved, sent, answer, started_at, started, notes=notes, kind=kind)
        if self._gets_another_token(resolved, answer, headers):
            left = seconds - (perf_counter() - started)
            return await self._send_once(resolved, request, left, kind, read)
        return answer, outcome

    def _gets_another_token(
        self, resolved: ResolvedAgent, answer: AgentAnswer, headers: Mapping[str, str]
    ) -> bool:
        """Whether the agent has refused its token, and so has not taken the request; once in a talk."""
        if self._has_renewed_token or answer.status != 401:
            return False
        self._has_renewed_token = resolved.tokens.discard(resolved.credentials, headers)
        return self._has_renewed_token

    def _headers(self, resolved: ResolvedAgent, request: AgentRequest) -> dict[str, str]:
        headers = {**resolved.headers, "X-Correlation-ID": self._task.correlation_id, **request.headers}
        if self._trace is not None:
            headers |= trace_headers(self._trace)
        return headers

    def _decode(self, resolved: ResolvedAgent, answer: AgentAnswer) -> Outcome:
        self._log.debug(
            names.PROTOCOL_RESPONSE_TRANSLATION,
            protocol=resolved.protocol,
            response_size=len(answer.body),
            http_status=answer.status,
            response=_LoggedBody(resolved, answer.body),
        )
        started = perf_counter()
        try:
            outcome = redact_outcome(resolved.adapter.decode(answer, self._task), resolved.redaction)
        except ProtocolTranslationError as exc:
            return self._translation_failed(resolved, exc, answer.body)
        self._metrics.translation_seconds.labels(resolved.protocol, "response").observe(
            perf_counter() - started
        )
        return outcome

    def _warn(self, resolved: ResolvedAgent, warnings: tuple[str, ...]) -> None:
        for warning in warnings:
            self._log.warning(names.AGENT_WARNING, protocol=resolved.protocol, warning=warning)

    def _translation_failed(
        self, resolved: ResolvedAgent, exc: ProtocolTranslationError, body: bytes
    ) -> Failed:
        self._metrics.translation_errors.labels(resolved.protocol, exc.direction, exc.code).inc()
        self._log.error(
            names.PROTOCOL_TRANSLATION_ERROR,
            protocol=resolved.protocol,
            direction=exc.direction,
            error=resolved.redaction.text(str(exc)),
            data=_LoggedBody(resolved, body),
        )
        return redact_failure(failure_of(exc), resolved.redaction)

    def record_auxiliary(self, aside: AuxiliaryRequest) -> None:
        """A request that had to be made before the agent could be called."""
        task = self._task
        exchange = record_exchange(
            aside.redaction if self._secrets is None else aside.redaction.with_secrets(self._secrets.hidden),
            aside.sent,
            aside.answer,
            step=task.step,
            attempt=task.attempt,
            started_at=aside.started_at,
            duration_ms=aside.duration_ms,
            error=aside.error,
            notes=aside.notes,
            kind=aside.kind,
            most_bytes=self._max_wire_bytes,
        )
        self.exchanges.append(
            ExchangeRecord(RunId(task.run_id), task.step, task.attempt, encode_exchange(exchange))
        )

    def _record(
        self,
        resolved: ResolvedAgent,
        sent: SentRequest,
        answer: AgentAnswer | None,
        started_at: Instant,
        started: float,
        *,
        error: str | None = None,
        notes: tuple[str, ...] = (),
        kind: ExchangeKind,
        frames: StreamFrames | None = None,
    ) -> None:
        task = self._task
        notes += self._route_notes
        if self._secrets is not None and kind in _CARRIES_INPUT:
            notes = (*notes, *self._secrets.notes)
        if self._push_target is not None:
            sent = replace(sent, body=redact_push_target(sent.body, self._push_target))
            answer = answer and replace(answer, body=redact_push_target(answer.body, self._push_target))
        exchange = record_exchange(
            resolved.redaction,
            sent,
            answer,
            step=task.step,
            attempt=task.attempt,
            started_at=started_at,
            duration_ms=round((perf_counter() - started) * 1000, 3),
            error=error,
            notes=notes,
            kind=kind,
            frames=frames,
            most_bytes=self._max_wire_bytes,
        )
        self.exchanges.append(
            ExchangeRecord(RunId(task.run_id), task.step, task.attempt, encode_exchange(exchange))
        )


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

    __slots__ = ("_body", "_resolved")

    def __init__(self, resolved: ResolvedAgent, body: bytes) -> None:
        self._resolved = resolved
        self._body = body

    def __repr__(self) -> str:
        margin = self._resolved.redaction.longest
        piece = self._body[: _LOGGED_BYTES + margin]
        text = self._resolved.redaction.text(piece.decode("utf-8", "replace"))
        # The edge of a piece may hold half a secret, and what was redacted before has moved it forward.
        whole = text if len(piece) == len(self._body) else text[: len(text) - margin]
        return whole[:_LOGGED_BYTES]
