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

from trunkline.bridge.asides import Aside
from trunkline.bridge.batches import Batches
from trunkline.bridge.bells import without_bell
from trunkline.bridge.call_spans import begin_call, note_answer
from trunkline.bridge.echoes import failure_without_echoes, without_echoes
from trunkline.bridge.exchanges import ExchangeKind, Sent, encode_exchange, record
from trunkline.bridge.frames import Frames
from trunkline.bridge.partners import Partner
from trunkline.bridge.streams import EVENT_STREAM, Heard, Listener, Patience
from trunkline.bridge.task_log import task_log
from trunkline.bridge.task_secrets import TaskSecrets
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
    StreamNews,
    Succeeded,
    Wishes,
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

_BROKEN_OFF = "Trunkline broke the call off before the answer was complete."
# The whole of a body is in the wire record.
_LOGGED_BYTES = 4_096
# Of one stream, event by event; each of them may be as long as a whole answer.
_MOST_STREAM_BYTES = 64 * 1024 * 1024

# Exchanges whose request has the task's input in it.
_CARRIES_INPUT = frozenset({"send", "stream"})

_Read = TypeVar("_Read")


class Talk:
    def __init__(
        self,
        transport: Transport,
        batches: Batches,
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
        self._most_bytes = most_bytes
        self._most_wire_bytes = most_wire_bytes
        self._notes_of_all = notes
        self._has_renewed = False
        # Where the agent may ring: for it alone to know.
        self._bell: PushTarget | None = None
        self._secrets: TaskSecrets | None = None
        self.exchanges: list[ExchangeRecord] = []
        self.beside = beside
        self._log = task_log(claim.task).bind(**{beside: True}) if beside else task_log(claim.task)

    def use(self, secrets: TaskSecrets) -> None:
        """From here on the task is sent with its secrets; `hiding` makes partners whose records do not show them."""
        self._secrets = secrets
        self._task = secrets.filled
        SECRETS_SENT.set(secrets.hidden)

    def hiding(self, partner: Partner) -> Partner:
        """The partner for this talk alone: it must not be kept."""
        if self._secrets is None:
            return partner
        # In a batch the others' records would have to hide them too.
        return replace(partner, redaction=partner.redaction.beside(self._secrets.hidden), batch=None)

    def without_secrets(self, exc: Exception) -> Exception:
        """The same mistake of ours, in words without the secrets of the call."""
        if self._secrets is None:
            return exc
        told = Redaction().beside(self._secrets.hidden).text(f"{type(exc).__name__}: {exc}")
        return RuntimeError(told).with_traceback(exc.__traceback__)

    def encode(self, partner: Partner, wishes: Wishes, *, streamed: bool) -> AgentRequest | Failed:
        """The task as a request; for a stream where that is wanted and the dialect has one."""
        started = perf_counter()
        try:
            request = partner.adapter.encode_stream(self._task) if streamed else None
            request = request or partner.adapter.encode(self._task, wishes)
        except ProtocolTranslationError as exc:
            return self._not_translated(partner, exc, b"")
        self._metrics.translation_seconds.labels(partner.protocol, "request").observe(
            perf_counter() - started
        )
        self._log.debug(
            names.PROTOCOL_REQUEST_TRANSLATION,
            protocol=partner.protocol,
            input_size=len(request.body),
            request=_Cut(partner, without_bell(request.body, wishes.push)),
        )
        self._bell = wishes.push
        return request

    async def exchange(
        self, partner: Partner, request: AgentRequest, seconds: float, kind: ExchangeKind = "send"
    ) -> Outcome:
        """Sends the request once; what the answer means, or why there is none."""
        self._metrics.protocol_requests.labels(partner.protocol, partner.agent.name).inc()
        answer, outcome = await self._carry(partner, request, seconds, kind, self._decode)
        self._note_outcome(partner, answer, outcome)
        return outcome

    def _note_outcome(self, partner: Partner, answer: AgentAnswer | None, outcome: Outcome) -> None:
        match outcome:
            case Succeeded():
                self._log.info(
                    names.OUTPUT_EXTRACTED,
                    protocol=partner.protocol,
                    output=_Cut(partner, outcome.output),
                )
                self._warn(partner, outcome.warnings)
            case Failed():
                self._warn(partner, outcome.warnings)
                self._log.error(
                    names.CALL_FAILED,
                    protocol=partner.protocol,
                    code=outcome.error.code,
                    error=outcome.error.message,
                    http_status=outcome.error.http_status,
                    data=_Cut(partner, answer.body if answer is not None else b""),
                )
            case Interrupted() | Working():
                pass

    async def stream(
        self,
        partner: Partner,
        request: AgentRequest,
        seconds: float,
        patience: Patience,
        hear: Callable[[StreamNews], None],
        *,
        remote_task_id: str | None = None,
    ) -> Heard:
        """
        Sends the request once and listens to the answer, for as long as `patience` has; `hear` is told every event.

        An agent may answer with one whole answer instead: that is taken as such.
        """
        with begin_call(self._traces, self._task, partner, "stream", request) as segment:
            self._trace = segment.trace
            answer, heard = await self._stream(partner, request, seconds, patience, hear, remote_task_id)
            note_answer(segment, self._traces, answer, heard.outcome)
        return heard

    async def _stream(
        self,
        partner: Partner,
        request: AgentRequest,
        seconds: float,
        patience: Patience,
        hear: Callable[[StreamNews], None],
        remote_task_id: str | None,
    ) -> tuple[AgentAnswer | None, Heard]:
        self._metrics.protocol_requests.labels(partner.protocol, partner.agent.name).inc()
        self._log.info(names.HTTP_CALL, protocol=partner.protocol)
        headers = {**self._headers(partner, request), "Accept": EVENT_STREAM}
        sent = Sent("POST" if request.body else "GET", partner.url(request), headers, request.body)
        started_at, started = self._clock.now(), perf_counter()
        frames = Frames(partner.redaction, most_bytes=self._most_wire_bytes)
        listener = Listener(
            partner.adapter.read_stream(self._task),
            partner.redaction,
            hear,
            patience,
            frames=frames,
            remote_task_id=remote_task_id,
            most_bytes=self._most_bytes,
        )
        limits = StreamLimits(
            first_seconds=seconds, idle_seconds=seconds, total_seconds=seconds, total_bytes=_MOST_STREAM_BYTES
        )
        answer: AgentAnswer | None = None
        try:
            async with patience, self._opened(partner, sent, headers, limits) as opened:
                streamed, started_at, started = opened
                if not _is_event_stream(streamed):
                    answer = await self._whole(streamed)
                    heard = Heard(outcome=self._decode(partner, answer))
                else:
                    answer = AgentAnswer(streamed.status, streamed.headers, b"")
                    heard = await listener.listen(streamed)
        except TimeoutError:
            heard = listener.let_go()
        except TransportError as exc:
            answer = exc.partial
            heard = listener.broken(exc.code, exc.message)
        except asyncio.CancelledError:
            self._record(
                partner, sent, answer, started_at, started, error=_BROKEN_OFF, kind="stream", frames=frames
            )
            raise
        if heard.misread is not None:
            self._not_translated(partner, heard.misread, answer.body if answer is not None else b"")
        notes = _notes(heard.outcome) if heard.trouble is None else ()
        self._record(
            partner,
            sent,
            answer,
            started_at,
            started,
            error=heard.trouble,
            notes=notes,
            kind="stream",
            frames=frames,
        )
        self._note_outcome(partner, answer, heard.outcome)
        return answer, heard

    @asynccontextmanager
    async def _opened(
        self, partner: Partner, sent: Sent, headers: dict[str, str], limits: StreamLimits
    ) -> AsyncGenerator[tuple[StreamedAnswer, Instant, float]]:
        """The answer, and when its request left: a token may have had to be fetched first."""
        while True:
            headers |= await partner.token(limits.first_seconds, self.note, sent.body)
            started_at, started = self._clock.now(), perf_counter()
            stream = self._transport.stream(
                sent.url, sent.body or None, headers, limits, partner.credentials.tls
            )
            async with stream as streamed:
                answer = AgentAnswer(streamed.status, streamed.headers, b"")
                if not self._gets_another_token(partner, answer, headers):
                    yield streamed, started_at, started
                    return
            self._record(partner, sent, answer, started_at, started, kind="stream")

    async def _whole(self, streamed: StreamedAnswer) -> AgentAnswer:
        body = bytearray()
        async for chunk in streamed.chunks():
            body += chunk
            if len(body) > self._most_bytes:
                raise TransportError(
                    "agent_answer_too_large", f"The agent's answer is larger than {self._most_bytes} bytes."
                )
        return AgentAnswer(streamed.status, streamed.headers, bytes(body))

    async def find(self, partner: Partner, request: AgentRequest, seconds: float) -> str | Failed | None:
        """The agent's own id of this task, if it has it; None: it says that it has not."""
        _, found = await self._carry(partner, request, seconds, "find", self._found)
        return found

    def _found(self, partner: Partner, answer: AgentAnswer) -> str | Failed | None:
        try:
            return partner.adapter.decode_find(answer, self._task)
        except ProtocolTranslationError as exc:
            return self._not_translated(partner, exc, answer.body)

    async def ask_to_stop(
        self, partner: Partner, request: AgentRequest, seconds: float, kind: ExchangeKind = "cancel"
    ) -> Outcome:
        """Asks the agent to end its task; that the task has ended without success is what was asked for."""
        _, outcome = await self._carry(partner, request, seconds, kind, self._decode)
        if isinstance(outcome, Failed) and outcome.error.code != "agent_task_failed":
            self._log.warning(
                names.CANCEL_NOT_CONFIRMED,
                protocol=partner.protocol,
                code=outcome.error.code,
                error=outcome.error.message,
            )
        return outcome

    async def _carry(
        self,
        partner: Partner,
        request: AgentRequest,
        seconds: float,
        kind: ExchangeKind,
        read: Callable[[Partner, AgentAnswer], _Read],
    ) -> tuple[AgentAnswer | None, _Read | Failed]:
        """Carries one request to the agent; what `read` makes of the answer, or why there is none."""
        with begin_call(self._traces, self._task, partner, kind, request) as segment:
            self._trace = segment.trace
            answer, outcome = await self._carry_once(partner, request, seconds, kind, read)
            note_answer(segment, self._traces, answer, outcome)
        return answer, outcome

    async def _carry_once(
        self,
        partner: Partner,
        request: AgentRequest,
        seconds: float,
        kind: ExchangeKind,
        read: Callable[[Partner, AgentAnswer], _Read],
    ) -> tuple[AgentAnswer | None, _Read | Failed]:
        self._log.info(names.HTTP_CALL, protocol=partner.protocol)
        headers = self._headers(partner, request)
        sent = Sent("POST" if request.body else "GET", partner.url(request), headers, request.body)
        started_at = self._clock.now()
        started = perf_counter()
        tls = partner.credentials.tls
        try:
            if partner.wants_token:
                headers |= await partner.token(seconds, self.note, request.body)
                # It may have had to be fetched first: that is an exchange of its own.
                started_at, started = self._clock.now(), perf_counter()
            if request.body:
                answer = await self._batches.post(
                    partner.batch, sent.url, request.body, headers, seconds, tls
                )
            else:
                answer = await self._transport.get(sent.url, headers, seconds, tls)
        except TransportError as exc:
            self._record(partner, sent, exc.partial, started_at, started, error=exc.message, kind=kind)
            message = partner.redaction.text(exc.message)
            status = exc.partial.status if exc.partial is not None else None
            error = StepError(code=exc.code, message=message, fix=fix_for(exc.code), http_status=status)
            return exc.partial, Failed(error=error)
        except asyncio.CancelledError:
            self._record(partner, sent, None, started_at, started, error=_BROKEN_OFF, kind=kind)
            raise
        outcome = read(partner, answer)
        notes = _notes(outcome)
        self._record(partner, sent, answer, started_at, started, notes=notes, kind=kind)
        if self._gets_another_token(partner, answer, headers):
            left = seconds - (perf_counter() - started)
            return await self._carry_once(partner, request, left, kind, read)
        return answer, outcome

    def _gets_another_token(self, partner: Partner, answer: AgentAnswer, headers: Mapping[str, str]) -> bool:
        """Whether the agent has refused its token, and so has not taken the request; once in a talk."""
        if self._has_renewed or answer.status != 401:
            return False
        self._has_renewed = partner.tokens.forget(partner.credentials, headers)
        return self._has_renewed

    def _headers(self, partner: Partner, request: AgentRequest) -> dict[str, str]:
        headers = {**partner.headers, "X-Correlation-ID": self._task.correlation_id, **request.headers}
        if self._trace is not None:
            headers |= trace_headers(self._trace)
        return headers

    def _decode(self, partner: Partner, answer: AgentAnswer) -> Outcome:
        self._log.debug(
            names.PROTOCOL_RESPONSE_TRANSLATION,
            protocol=partner.protocol,
            response_size=len(answer.body),
            http_status=answer.status,
            response=_Cut(partner, answer.body),
        )
        started = perf_counter()
        try:
            outcome = without_echoes(partner.adapter.decode(answer, self._task), partner.redaction)
        except ProtocolTranslationError as exc:
            return self._not_translated(partner, exc, answer.body)
        self._metrics.translation_seconds.labels(partner.protocol, "response").observe(
            perf_counter() - started
        )
        return outcome

    def _warn(self, partner: Partner, warnings: tuple[str, ...]) -> None:
        for warning in warnings:
            self._log.warning(names.AGENT_WARNING, protocol=partner.protocol, warning=warning)

    def _not_translated(self, partner: Partner, exc: ProtocolTranslationError, body: bytes) -> Failed:
        self._metrics.translation_errors.labels(partner.protocol, exc.direction, exc.code).inc()
        self._log.error(
            names.PROTOCOL_TRANSLATION_ERROR,
            protocol=partner.protocol,
            direction=exc.direction,
            error=partner.redaction.text(str(exc)),
            data=_Cut(partner, body),
        )
        return failure_without_echoes(failure_of(exc), partner.redaction)

    def note(self, aside: Aside) -> None:
        """A request that had to be made before the agent could be called."""
        task = self._task
        exchange = record(
            aside.redaction if self._secrets is None else aside.redaction.beside(self._secrets.hidden),
            aside.sent,
            aside.answer,
            step=task.step,
            attempt=task.attempt,
            started_at=aside.started_at,
            duration_ms=aside.duration_ms,
            error=aside.error,
            notes=aside.notes,
            kind=aside.kind,
            most_bytes=self._most_wire_bytes,
        )
        self.exchanges.append(
            ExchangeRecord(RunId(task.run_id), task.step, task.attempt, encode_exchange(exchange))
        )

    def _record(
        self,
        partner: Partner,
        sent: Sent,
        answer: AgentAnswer | None,
        started_at: Instant,
        started: float,
        *,
        error: str | None = None,
        notes: tuple[str, ...] = (),
        kind: ExchangeKind,
        frames: Frames | None = None,
    ) -> None:
        task = self._task
        notes += self._notes_of_all
        if self._secrets is not None and kind in _CARRIES_INPUT:
            notes = (*notes, *self._secrets.notes)
        if self._bell is not None:
            sent = replace(sent, body=without_bell(sent.body, self._bell))
            answer = answer and replace(answer, body=without_bell(answer.body, self._bell))
        exchange = record(
            partner.redaction,
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
            most_bytes=self._most_wire_bytes,
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


class _Cut:
    """A body as a log line may show it; made only when the line is written."""

    __slots__ = ("_body", "_partner")

    def __init__(self, partner: Partner, body: bytes) -> None:
        self._partner = partner
        self._body = body

    def __repr__(self) -> str:
        margin = self._partner.redaction.longest
        piece = self._body[: _LOGGED_BYTES + margin]
        text = self._partner.redaction.text(piece.decode("utf-8", "replace"))
        # The edge of a piece may hold half a secret, and what was redacted before has moved it forward.
        whole = text if len(piece) == len(self._body) else text[: len(text) - margin]
        return whole[:_LOGGED_BYTES]
