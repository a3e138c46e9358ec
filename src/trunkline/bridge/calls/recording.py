"""
The wire records of one call, and what must not appear in them.

Everything that is sent to an agent for a call, and everything that comes back, is recorded here and nowhere else:
`runs wire` shows all of it.
"""

from __future__ import annotations

import asyncio

import structlog
from msgspec.structs import replace

from trunkline.bridge.agents.resolver import ResolvedAgent
from trunkline.bridge.calls.task_secrets import TaskSecrets
from trunkline.bridge.wire.exchanges import (
    AuxiliaryRequest,
    BlobReference,
    ExchangeKind,
    RecordedExchange,
    SentRequest,
    WholeBody,
    encode_exchange,
    record_exchange,
)
from trunkline.bridge.wire.secret_redaction import redact_push_target
from trunkline.bridge.wire.stream_frames import StreamFrameRecorder
from trunkline.clock import Instant
from trunkline.errors import Unavailable
from trunkline.ids import RunId
from trunkline.messages import AgentTask
from trunkline.protocols import AgentAnswer, PushTarget
from trunkline.stores.base import ExchangeRecord
from trunkline.stores.blobs import BlobStore
from trunkline.telemetry import log_events
from trunkline.telemetry.redaction import Redaction, redacted_text

log = structlog.stdlib.get_logger()

_WHOLE = "The stored response body"
_MORE = "The setting max_body_bytes says how many."
# Exchanges whose request has the task's input in it.
_CARRIES_INPUT = frozenset({"send", "stream"})


class ExchangeRecorder:
    def __init__(self, task: AgentTask, max_wire_bytes: int, notes: tuple[str, ...] = ()) -> None:
        """`notes` are for the record of every request to the agent."""
        self._task = task
        self._notes = notes
        self.max_wire_bytes = max_wire_bytes
        self.secrets: TaskSecrets | None = None
        # Where the agent may send push notifications: for it alone to know.
        self.push_target: PushTarget | None = None
        self.exchanges: list[ExchangeRecord] = []

    def hide_secrets_of(self, agent: ResolvedAgent) -> ResolvedAgent:
        """The agent for this call alone, whose redaction knows the call's secrets: it must not be cached."""
        if self.secrets is None:
            return agent
        # In a batch the others' records would have to hide them too.
        return replace(agent, redaction=agent.redaction.with_secrets(self.secrets.hidden), batch=None)

    def without_secrets(self, exc: Exception) -> Exception:
        """Our own exception as text, without the secrets of the call."""
        if self.secrets is None:
            return exc
        redacted = Redaction().with_secrets(self.secrets.hidden).text(f"{type(exc).__name__}: {exc}")
        return RuntimeError(redacted).with_traceback(exc.__traceback__)

    def add_auxiliary(self, request: AuxiliaryRequest) -> None:
        """A request that had to be made before the agent could be called."""
        redaction = request.redaction
        exchange = record_exchange(
            redaction if self.secrets is None else redaction.with_secrets(self.secrets.hidden),
            request.sent,
            request.answer,
            step=self._task.step,
            attempt=self._task.attempt,
            started_at=request.started_at,
            duration_ms=request.duration_ms,
            error=request.error,
            notes=request.notes,
            kind=request.kind,
            max_bytes=self.max_wire_bytes,
        )
        self._add(exchange)

    def add(
        self,
        redaction: Redaction,
        sent: SentRequest,
        answer: AgentAnswer | None,
        *,
        started_at: Instant,
        duration_ms: float,
        kind: ExchangeKind,
        error: str | None = None,
        notes: tuple[str, ...] = (),
        frames: StreamFrameRecorder | None = None,
        whole: WholeBody | None = None,
    ) -> None:
        notes += self._notes
        if self.secrets is not None and kind in _CARRIES_INPUT:
            notes = (*notes, *self.secrets.notes)
        if self.push_target is not None:
            sent = replace(sent, body=redact_push_target(sent.body, self.push_target))
            answer = answer and replace(answer, body=self.without_push_target(answer.body))
        exchange = record_exchange(
            redaction,
            sent,
            answer,
            step=self._task.step,
            attempt=self._task.attempt,
            started_at=started_at,
            duration_ms=duration_ms,
            error=error,
            notes=notes,
            kind=kind,
            frames=frames,
            max_bytes=self.max_wire_bytes,
            whole=whole,
        )
        self._add(exchange)

    def without_push_target(self, body: bytes) -> bytes:
        return body if self.push_target is None else redact_push_target(body, self.push_target)

    def _add(self, exchange: RecordedExchange) -> None:
        task = self._task
        self.exchanges.append(
            ExchangeRecord(RunId(task.run_id), task.step, task.attempt, encode_exchange(exchange))
        )


async def keep_whole(
    blobs: BlobStore | None, run_id: RunId, body: bytes, redaction: Redaction, max_bytes: int
) -> WholeBody:
    """
    Keeps up to `max_bytes` of a malformed answer: an operator needs all of it to see what is wrong with it.

    The redacted text goes to the blob store; without one, into the record. If the blob store is unavailable, the record
    has only the beginning.
    """
    if blobs is None:
        return WholeBody(max_bytes=max_bytes)
    notes: list[str] = []
    # Not in the event loop: so long a text would delay all other calls.
    text = await asyncio.to_thread(redacted_text, body, redaction, _WHOLE, notes, max_bytes, more=_MORE)
    content = text.encode()
    try:
        digest = await blobs.put(run_id, content)
    except Unavailable as exc:
        log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
        return WholeBody(notes=("The whole response body could not be stored.",))
    href = f"/api/v1/runs/{run_id}/blobs/{digest}"
    note = (
        f"The whole response body is a file of {len(content):,} bytes: trunkline runs file {run_id} {digest}"
    )
    return WholeBody(
        blob=BlobReference(run=run_id, id=digest, bytes=len(content), href=href), notes=(*notes, note)
    )
