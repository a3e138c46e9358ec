"""
One claimed task's talk with its agent: send, record, count, log, translate.

What leaves and what comes back is recorded here, and nowhere else: `runs wire` shows all of it.
"""

from __future__ import annotations

from time import perf_counter

from trunkline.bridge.echoes import without_echoes
from trunkline.bridge.exchanges import Sent, encode_exchange, record
from trunkline.bridge.partners import Partner
from trunkline.bridge.task_log import task_log
from trunkline.bridge.transports.base import Transport, TransportError
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
    Succeeded,
    Working,
    failure_of,
)
from trunkline.stores.base import ClaimedTask, ExchangeRecord
from trunkline.telemetry import names
from trunkline.telemetry.metrics import Metrics

# The whole of a body is in the wire record.
_LOGGED_BYTES = 4_096


class Talk:
    def __init__(self, transport: Transport, clock: Clock, metrics: Metrics, claim: ClaimedTask) -> None:
        self._transport = transport
        self._clock = clock
        self._metrics = metrics
        self._task = claim.task
        self.exchanges: list[ExchangeRecord] = []
        self._log = task_log(claim.task)

    def encode(self, partner: Partner) -> AgentRequest | Outcome:
        """The task as a request."""
        started = perf_counter()
        try:
            request = partner.adapter.encode(self._task)
        except ProtocolTranslationError as exc:
            return self._not_translated(partner, exc, b"")
        self._metrics.translation_seconds.labels(partner.protocol, "request").observe(
            perf_counter() - started
        )
        self._log.debug(
            names.PROTOCOL_REQUEST_TRANSLATION,
            protocol=partner.protocol,
            input_size=len(request.body),
            request=_Cut(partner, request.body),
        )
        return request

    async def exchange(self, partner: Partner, request: AgentRequest, seconds: float) -> Outcome:
        """Sends the request once; what the answer means, or why there is none."""
        self._metrics.protocol_requests.labels(partner.protocol, partner.agent.name).inc()
        answer, outcome = await self._send(partner, request, seconds)
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
        return outcome

    async def ask_to_stop(self, partner: Partner, request: AgentRequest, seconds: float) -> None:
        """Asks the agent to end its task; that the task has ended without success is what was asked for."""
        _, outcome = await self._send(partner, request, seconds)
        if isinstance(outcome, Failed) and outcome.error.code != "agent_task_failed":
            self._log.warning(
                names.CANCEL_NOT_CONFIRMED,
                protocol=partner.protocol,
                code=outcome.error.code,
                error=outcome.error.message,
            )

    async def _send(
        self, partner: Partner, request: AgentRequest, seconds: float
    ) -> tuple[AgentAnswer | None, Outcome]:
        self._log.info(names.HTTP_CALL, protocol=partner.protocol)
        headers = {**partner.headers, "X-Correlation-ID": self._task.correlation_id, **request.headers}
        sent = Sent("POST", partner.address, headers, request.body)
        started_at = self._clock.now()
        started = perf_counter()
        try:
            answer = await self._transport.post(partner.address, request.body, headers, seconds)
        except TransportError as exc:
            self._record(partner, sent, exc.partial, started_at, started, error=exc.message)
            message = partner.redaction.text(exc.message)
            status = exc.partial.status if exc.partial is not None else None
            error = StepError(code=exc.code, message=message, fix=fix_for(exc.code), http_status=status)
            return exc.partial, Failed(error=error)
        outcome = self._decode(partner, answer)
        notes = outcome.warnings if isinstance(outcome, Succeeded | Failed) else ()
        self._record(partner, sent, answer, started_at, started, notes=notes)
        return answer, outcome

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

    def _not_translated(self, partner: Partner, exc: ProtocolTranslationError, body: bytes) -> Outcome:
        self._metrics.translation_errors.labels(partner.protocol, exc.direction, exc.code).inc()
        self._log.error(
            names.PROTOCOL_TRANSLATION_ERROR,
            protocol=partner.protocol,
            direction=exc.direction,
            error=partner.redaction.text(str(exc)),
            data=_Cut(partner, body),
        )
        return without_echoes(failure_of(exc), partner.redaction)

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
    ) -> None:
        task = self._task
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
        )
        self.exchanges.append(
            ExchangeRecord(RunId(task.run_id), task.step, task.attempt, encode_exchange(exchange))
        )


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
