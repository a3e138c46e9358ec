"""
What is said to an agent about one task: the message, what it streams, how the task stands, and the wish to stop.

    send ----------- answered: the end, or the agent has the task and works; then it is asked
      |
      | as a stream
      v
    listen --- over, cut or long enough: its stream is taken up again after a cut, then it is asked

What becomes of the task is not decided here, but by whoever has it (invoke.py, beside.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Literal, Protocol, TypeVar

import msgspec
import structlog

from trunkline.bridge.agents.resolver import ResolvedAgent
from trunkline.bridge.agents.routes import Route
from trunkline.bridge.calls.batches import BatchSender
from trunkline.bridge.calls.progress import ProgressReporter
from trunkline.bridge.calls.results import (
    CallUpdate,
    after_failed_poll,
    hints_at_other_dialect,
    poll_delay,
    poll_delay_with_push,
    refuses_streams,
    step_error,
    task_log,
    unfinished,
)
from trunkline.bridge.calls.session import AgentSession
from trunkline.bridge.calls.streams import StreamResult, StreamTimeout
from trunkline.bridge.calls.task_secrets import open_secrets
from trunkline.bridge.wire.exchanges import MAX_BODY_BYTES
from trunkline.clock import Clock, after, seconds_between
from trunkline.errors import Unavailable
from trunkline.messages import ERROR_CODES, AgentTask, StepError
from trunkline.protocols import AgentRequest, Failed, Outcome, PushTarget, SendOptions, Working
from trunkline.services.security.secrets import Secrets
from trunkline.stores.base import ClaimedTask, TaskKey
from trunkline.telemetry import names
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.traces import Traces
from trunkline.transports.base import Transport

# One question must not use up the whole attempt.
_POLL_SECONDS = 10.0
_CANCEL_SECONDS = 5.0


class PushTargets(Protocol):
    def target(self, key: TaskKey) -> PushTarget | None:
        """Where the agent may ring for this task; None: it cannot reach us."""
        ...


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a line is held, how much is listened to, and how much of it is kept."""

    # A task that takes longer than this holds neither a socket nor a lease.
    max_stream_seconds: float = 60.0
    max_answer_bytes: int = 16 * 1024 * 1024
    # Of a body, for the wire's record.
    max_wire_bytes: int = MAX_BODY_BYTES


class AgentClient:
    def __init__(
        self,
        transport: Transport,
        batches: BatchSender,
        clock: Clock,
        metrics: Metrics,
        *,
        manners: CallLimits,
        pushes: PushTargets,
        secrets: Secrets,
        traces: Traces,
    ) -> None:
        self._transport = transport
        self._batches = batches
        self._clock = clock
        self._metrics = metrics
        self._limits = manners
        self._push_targets = pushes
        self._secrets = secrets
        self._traces = traces
        self._listening: set[StreamTimeout] = set()
        self.is_stopping = False

    def stop_listening(self) -> None:
        """At a stop: whoever listens to a stream leaves it."""
        self.is_stopping = True
        for patience in self._listening:
            patience.expire()

    def seconds_left(self, claim: ClaimedTask) -> float:
        return 0.0 if claim.deadline is None else seconds_between(self._clock.now(), claim.deadline)

    def session(
        self, claim: ClaimedTask, route: Route | None, *, beside: Literal["shadow", "trial"] | None = None
    ) -> AgentSession:
        return AgentSession(
            self._transport,
            self._batches,
            self._clock,
            self._metrics,
            self._traces,
            claim,
            self._limits.max_answer_bytes,
            self._limits.max_wire_bytes,
            notes=() if route is None else route.notes,
            beside=beside,
        )

    async def open_secrets(self, session: AgentSession, task: AgentTask) -> StepError | None:
        """Gives the talk the secrets of its task; why that is not possible."""
        opened = await retry_while_unavailable(lambda: open_secrets(task, self._secrets))
        if isinstance(opened, StepError):
            task_log(task).warning(names.SECRET_NOT_KNOWN, code=opened.code, error=opened.message)
            return opened
        session.attach_secrets(opened)
        return None

    # --- the message

    async def send(
        self,
        session: AgentSession,
        resolved: ResolvedAgent,
        claim: ClaimedTask,
        report: Callable[[CallUpdate], None],
    ) -> tuple[ResolvedAgent, Outcome]:
        outcome = await self._send_once(session, resolved, claim, report)
        if isinstance(outcome, Failed) and outcome.other_dialect:
            return await self._send_in_other_dialects(session, resolved, outcome, claim, report)
        if isinstance(outcome, Failed) and hints_at_other_dialect(outcome.error):
            resolved.resolver.invalidate(resolved)
        return resolved, outcome

    async def _send_in_other_dialects(
        self,
        session: AgentSession,
        refused: ResolvedAgent,
        refusal: Failed,
        claim: ClaimedTask,
        report: Callable[[CallUpdate], None],
    ) -> tuple[ResolvedAgent, Outcome]:
        """In each other way that the agent may understand, as long as it proves that it has not taken the work."""
        resolved, outcome = refused, refusal
        while True:
            other = await resolved.resolver.resolve_alternative(
                resolved, outcome.error.message, session.record_auxiliary
            )
            if not isinstance(other, ResolvedAgent):
                return refused, refusal
            hiding = session.with_secrets_hidden(other)
            second = await self._send_once(session, hiding, claim, report)
            if not (isinstance(second, Failed) and second.other_dialect):
                await other.resolver.adopt(other)
                return hiding, second
            resolved, outcome = other, second

    async def _send_once(
        self,
        session: AgentSession,
        resolved: ResolvedAgent,
        claim: ClaimedTask,
        report: Callable[[CallUpdate], None],
    ) -> Outcome:
        if resolved.streams and resolved.batch is None:
            request = session.encode(resolved, SendOptions(), streamed=True)
            if not isinstance(request, AgentRequest):
                return request
            outcome = await self._listen(session, resolved, claim, request, report)
            if not refuses_streams(outcome):
                return outcome
        left = self.seconds_left(claim)
        options = SendOptions(
            push=self._push_targets.target(claim.key)
            if resolved.dialect.pushes and not session.detached
            else None,
            return_immediately=left > self._limits.max_stream_seconds,
        )
        request = session.encode(resolved, options, streamed=False)
        if not isinstance(request, AgentRequest):
            return request
        return await session.exchange(resolved, request, left)

    async def _listen(
        self,
        session: AgentSession,
        resolved: ResolvedAgent,
        claim: ClaimedTask,
        request: AgentRequest,
        report: Callable[[CallUpdate], None],
    ) -> Outcome:
        """To the end, if it comes soon enough; after a cut once more, and then the agent is asked."""
        with self._listener(claim, resolved, report) as (news, patience):
            heard = await session.stream(
                resolved, request, self.seconds_left(claim), patience, news.add_event
            )
            outcome = heard.outcome
            if not isinstance(outcome, Working):
                return outcome
            if heard.was_cut:
                await self._resubscribe(session, resolved, claim, outcome.remote_task_id, news, patience)
            elif patience.has_expired:
                return outcome
            # Only the task itself has everything: a stream that was taken up again has not.
            return await self.poll(session, resolved, claim, outcome.remote_task_id)

    async def resume_stream(
        self,
        session: AgentSession,
        resolved: ResolvedAgent,
        claim: ClaimedTask,
        known: Working,
        report: Callable[[CallUpdate], None],
    ) -> Outcome:
        """Goes on with a stream whose listener has died; `known` is how the task stands now."""
        with self._listener(claim, resolved, report) as (news, patience):
            if (
                await self._resubscribe(session, resolved, claim, known.remote_task_id, news, patience)
                is None
            ):
                return known
            return (
                known
                if patience.has_expired
                else await self.poll(session, resolved, claim, known.remote_task_id)
            )

    async def _resubscribe(
        self,
        session: AgentSession,
        resolved: ResolvedAgent,
        claim: ClaimedTask,
        remote_task_id: str,
        news: ProgressReporter,
        patience: StreamTimeout,
    ) -> StreamResult | None:
        """None: there is no way to, or no time."""
        again = resolved.adapter.encode_resubscribe(claim.task, remote_task_id)
        left = self.seconds_left(claim)
        if again is None or left <= 0:
            return None
        return await session.stream(
            resolved, again, left, patience, news.add_event, remote_task_id=remote_task_id
        )

    @contextmanager
    def _listener(
        self, claim: ClaimedTask, resolved: ResolvedAgent, report: Callable[[CallUpdate], None]
    ) -> Generator[tuple[ProgressReporter, StreamTimeout]]:
        news = ProgressReporter(claim, self._clock, resolved.protocol, resolved.redaction, report)
        patience = StreamTimeout(self._limits.max_stream_seconds)
        self._listening.add(patience)
        if self.is_stopping:
            patience.expire()
        try:
            yield news, patience
        finally:
            news.close()
            self._listening.discard(patience)

    # --- how the task stands

    async def poll(
        self, session: AgentSession, resolved: ResolvedAgent, claim: ClaimedTask, remote_task_id: str
    ) -> Outcome:
        request = resolved.adapter.encode_poll(claim.task, remote_task_id)
        if request is None:
            return unfinished("working")
        seconds = min(max(self.seconds_left(claim), 1.0), _POLL_SECONDS)
        outcome = await session.exchange(resolved, request, seconds, "poll")
        answered = outcome.remote_task_id
        if answered is not None and answered != remote_task_id:
            message = f"Response ID mismatch: asked for the task {remote_task_id}, got {answered}"
            return Failed(error=step_error("agent_response_id_mismatch", message))
        return after_failed_poll(outcome, remote_task_id) if isinstance(outcome, Failed) else outcome

    async def find(
        self, session: AgentSession, resolved: ResolvedAgent, claim: ClaimedTask
    ) -> tuple[str | Failed | None, str]:
        """The agent's own id of a task that it may have got before, or None; and why it is called again then."""
        request = resolved.adapter.encode_find(claim.task)
        if request is None:
            return None, "it cannot be asked whether it has the task"
        found = await session.find(resolved, request, min(self.seconds_left(claim), _POLL_SECONDS))
        if isinstance(found, Failed) and ERROR_CODES[found.error.code].answered:
            # Not the agent's answer to the message: that one is still open, and must not count as failed.
            return None, f"asked whether it has the task, it says {found.error.message!r}"
        return found, "it says that it does not have the task"

    def poll_delay(self, resolved: ResolvedAgent, claim: ClaimedTask) -> timedelta:
        """Until it is asked again."""
        rings = resolved.dialect.pushes and not resolved.streams
        if rings and self._push_targets.target(claim.key) is not None:
            return poll_delay_with_push(claim.polls)
        return poll_delay(claim.polls)

    # --- the wish to stop

    async def cancel_once(
        self, session: AgentSession, resolved: ResolvedAgent, claim: ClaimedTask, remote_task_id: str
    ) -> None:
        """Asks the agent once to end its task, whatever it says."""
        request = resolved.adapter.encode_cancel(claim.task, remote_task_id)
        if isinstance(request, AgentRequest):
            await session.request_cancel(resolved, request, _CANCEL_SECONDS)

    async def cancel(
        self, session: AgentSession, resolved: ResolvedAgent, claim: ClaimedTask, request: AgentRequest
    ) -> None:
        """Asks the agent to end its task, and then for a while whether it has."""
        until = after(self._clock.now(), timedelta(seconds=_CANCEL_SECONDS))
        polls = 0
        outcome = await session.request_cancel(resolved, request, _CANCEL_SECONDS)
        # Some agents take the wish and work on for a while: only the end of the task confirms it.
        while isinstance(outcome, Working):
            question = resolved.adapter.encode_poll(claim.task, outcome.remote_task_id)
            pause = poll_delay(polls).total_seconds()
            left = seconds_between(self._clock.now(), until) - pause
            if question is None or left <= 0:
                task_log(claim.task).warning(
                    names.CANCEL_NOT_CONFIRMED, protocol=resolved.protocol, state=outcome.state
                )
                return
            await asyncio.sleep(pause)
            outcome = await session.request_cancel(resolved, question, left, "poll")
            polls += 1


log = structlog.stdlib.get_logger()

_Read = TypeVar("_Read")

# Seconds; a store that is away is asked again at this pace.
_PAUSE = 0.5


async def retry_while_unavailable(read: Callable[[], Awaitable[_Read]]) -> _Read:
    """Waits while a store is away: the agent has no part in it, so nothing has failed."""
    while True:
        try:
            return await read()
        except Unavailable as exc:
            log.error(names.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
            await asyncio.sleep(_PAUSE)
