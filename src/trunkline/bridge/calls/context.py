"""What all calls of a process share: the transport, the limits, the secrets, and the streams that are open now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import msgspec
import structlog

from trunkline.bridge.calls.batches import BatchSender
from trunkline.bridge.calls.recording import ExchangeRecorder
from trunkline.bridge.calls.results import task_log
from trunkline.bridge.calls.streams import StreamTimeout
from trunkline.bridge.calls.task_secrets import open_secrets
from trunkline.bridge.wire.exchanges import MAX_BODY_BYTES
from trunkline.clock import Clock
from trunkline.errors import Unavailable
from trunkline.messages import AgentTask, StepError
from trunkline.protocols import PushTarget
from trunkline.services.security.secrets import Secrets
from trunkline.stores.base import TaskKey
from trunkline.stores.blobs import BlobStore
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.traces import Traces
from trunkline.transports.base import SECRETS_SENT, Transport

log = structlog.stdlib.get_logger()

_Read = TypeVar("_Read")

# Seconds; a store that is unavailable is read again at this pace.
_RETRY_PAUSE = 0.5


class PushTargets(Protocol):
    def target(self, key: TaskKey) -> PushTarget | None:
        """Where the agent may send push notifications for this task; None: it cannot reach us."""
        ...


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a stream is read, how large an answer may be, and how much of it is recorded."""

    # A task that takes longer than this holds neither a socket nor a lease.
    max_stream_seconds: float = 60.0
    max_answer_bytes: int = 16 * 1024 * 1024
    # Of a body, for the wire record.
    max_wire_bytes: int = MAX_BODY_BYTES
    # Of a malformed answer, which is kept whole.
    max_body_bytes: int = 4 * 1024 * 1024


class CallContext:
    def __init__(
        self,
        transport: Transport,
        batches: BatchSender,
        clock: Clock,
        metrics: Metrics,
        *,
        limits: CallLimits,
        push_targets: PushTargets,
        secrets: Secrets,
        traces: Traces,
        blobs: BlobStore | None = None,
    ) -> None:
        self.transport = transport
        self.batches = batches
        self.clock = clock
        self.metrics = metrics
        self.limits = limits
        self.push_targets = push_targets
        self.traces = traces
        self.blobs = blobs
        self.is_stopping = False
        self._secrets = secrets
        self._open_streams: set[StreamTimeout] = set()

    def stop_listening(self) -> None:
        """At a stop: every call that reads a stream leaves it."""
        self.is_stopping = True
        for timeout in self._open_streams:
            timeout.expire()

    @contextmanager
    def stream_timeout(self) -> Generator[StreamTimeout]:
        """How long the streams of one task may be read."""
        timeout = StreamTimeout(self.limits.max_stream_seconds)
        self._open_streams.add(timeout)
        if self.is_stopping:
            timeout.expire()
        try:
            yield timeout
        finally:
            self._open_streams.discard(timeout)

    async def open_secrets(self, task: AgentTask, recorder: ExchangeRecorder) -> StepError | None:
        """From here on the task is sent with its secrets, and records do not show them; why that is not possible."""
        opened = await retry_while_unavailable(lambda: open_secrets(task, self._secrets))
        if isinstance(opened, StepError):
            task_log(task).warning(log_events.SECRET_UNAVAILABLE, code=opened.code, error=opened.message)
            return opened
        recorder.secrets = opened
        SECRETS_SENT.set(opened.hidden)
        return None


async def retry_while_unavailable(read: Callable[[], Awaitable[_Read]]) -> _Read:
    """Waits while a store is unavailable: the agent has no part in it, so nothing has failed."""
    while True:
        try:
            return await read()
        except Unavailable as exc:
            log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
            await asyncio.sleep(_RETRY_PAUSE)
