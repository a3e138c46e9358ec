"""
Reads one streamed answer: its events are handed on as they come, and its end yields the outcome.

A stream is a convenience. When it does not yield the outcome (it was cut, it took too long, it was not understood) the
task is polled afterwards, because by then the agent has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

import msgspec

from trunkline.bridge.wire.secret_redaction import redact_failure, redact_outcome, redact_stream_event
from trunkline.bridge.wire.stream_frames import StreamFrameRecorder
from trunkline.messages import StepError, fix_for
from trunkline.protocols import (
    Failed,
    Outcome,
    ProtocolTranslationError,
    StreamUpdate,
    TaskStreamReader,
    Working,
    failure_of,
)
from trunkline.sse import SseLimitExceeded, SseParser
from trunkline.telemetry.redaction import Redaction
from trunkline.transports.base import StreamedAnswer, TransportError

EVENT_STREAM = "text/event-stream"


class StreamResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream has brought."""

    outcome: Outcome
    # It broke off: where the agent has the task, its stream may be resumed.
    was_cut: bool = False
    # Why it yields less than it might.
    problem: str | None = None
    # What could not be translated, for the log.
    translation_error: ProtocolTranslationError | None = None


class StreamTimeout:
    """
    How long the streams of a task are read, one after another: once the agent has the task, reading may end any time.
    """

    def __init__(self, seconds: float) -> None:
        self._end = asyncio.get_running_loop().time() + seconds
        self._has_task = False
        # Of the stream that is listened to now.
        self._timeout: asyncio.Timeout | None = None

    @property
    def has_expired(self) -> bool:
        return self._has_task and asyncio.get_running_loop().time() >= self._end

    async def __aenter__(self) -> None:
        """The block raises TimeoutError when it is over."""
        self._timeout = await asyncio.timeout(None).__aenter__()
        self._reschedule()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        timeout, self._timeout = self._timeout, None
        if timeout is not None:
            if timeout.expired():
                # A timer may fire a moment early.
                self._end = asyncio.get_running_loop().time()
            await timeout.__aexit__(kind, error, trace)

    def agent_has_task(self) -> None:
        if not self._has_task:
            self._has_task = True
            self._reschedule()

    def expire(self) -> None:
        self._end = asyncio.get_running_loop().time()
        self._reschedule()

    def _reschedule(self) -> None:
        if self._has_task and self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(self._end)


class AgentStreamReader:
    """Reads one stream of one task."""

    def __init__(
        self,
        reading: TaskStreamReader,
        redaction: Redaction,
        report: Callable[[StreamUpdate], None],
        timeout: StreamTimeout,
        *,
        frames: StreamFrameRecorder,
        remote_task_id: str | None,
        max_bytes: int,
    ) -> None:
        self._events = reading
        self._redaction = redaction
        self._report_update = report
        self._timeout = timeout
        self._remote_task_id = remote_task_id
        self._parser = SseParser(max_line_bytes=max_bytes, max_event_bytes=max_bytes)
        self._frames = frames
        if remote_task_id is not None:
            timeout.agent_has_task()

    async def read(self, answer: StreamedAnswer) -> StreamResult:
        """Until it is over or breaks off."""
        try:
            async for chunk in answer.chunks():
                for event in self._parser.feed(chunk):
                    self._frames.add(event.data)
                    if event.data and self._handle_event(event.data):
                        return StreamResult(outcome=self._outcome())
            # It ended properly, but the task may not have.
            return StreamResult(outcome=self._outcome())
        except TransportError as exc:
            return self.interrupted(exc.code, exc.message)
        except SseLimitExceeded as exc:
            return self.interrupted("agent_answer_too_large", str(exc))
        except ProtocolTranslationError as exc:
            problem_text = self._redaction.text(str(exc))
            asked = self._working()
            if asked is None:
                return StreamResult(
                    outcome=redact_failure(failure_of(exc), self._redaction), translation_error=exc
                )
            return StreamResult(outcome=asked, problem=problem_text, translation_error=exc)

    def interrupted(self, code: str, message: str) -> StreamResult:
        """No more comes: the task is polled, if the agent has it."""
        problem_text = self._redaction.text(message)
        asked = self._working()
        if asked is not None:
            return StreamResult(outcome=asked, was_cut=True, problem=problem_text)
        return StreamResult(
            outcome=Failed(error=StepError(code=code, message=problem_text, fix=fix_for(code))),
            problem=problem_text,
        )

    def timed_out(self) -> StreamResult:
        """The time for reading is over."""
        asked = self._working()
        if asked is None:
            return self.interrupted(
                "agent_timeout", "The agent did not report the state of the task in time."
            )
        return StreamResult(outcome=asked)

    def _working(self) -> Working | None:
        if self._remote_task_id is None:
            return None
        return Working(remote_task_id=self._remote_task_id, state="working")

    def _handle_event(self, data: bytes) -> bool:
        update = redact_stream_event(self._events.take(data), self._redaction)
        if update.remote_task_id is not None:
            self._remote_task_id = update.remote_task_id
            self._timeout.agent_has_task()
        if not update.is_over:
            # The end itself is reported by the outcome.
            self._report_update(update)
        return update.is_over

    def _outcome(self) -> Outcome:
        return redact_outcome(self._events.outcome(), self._redaction)
