"""
The requests and answers of one call: the message, its stream, polls, the search for a lost task, the cancellation.

    send ----------- answered: the end, or the agent has the task and works; then it is polled
      |
      | as a stream
      v
    listen --- over, cut or long enough: after a cut the stream is resumed once, then the task is polled

What becomes of the task is decided by the call that has the session (agent_call.py, detached.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from trunkline.bridge.agents.resolver import ResolvedAgent
from trunkline.bridge.calls.agent_client import AgentClient, Detached
from trunkline.bridge.calls.context import CallContext
from trunkline.bridge.calls.progress import ProgressReporter
from trunkline.bridge.calls.recording import ExchangeRecorder
from trunkline.bridge.calls.results import (
    CallProgress,
    after_failed_poll,
    hints_at_other_dialect,
    poll_delay,
    poll_delay_with_push,
    refuses_streams,
    step_error,
    task_log,
    unfinished,
)
from trunkline.bridge.calls.streams import StreamResult, StreamTimeout
from trunkline.clock import after, seconds_between
from trunkline.messages import ERROR_CODES
from trunkline.protocols import AgentRequest, Failed, Outcome, SendOptions, Working
from trunkline.stores.base import ClaimedTask, ExchangeRecord
from trunkline.telemetry import log_events

# One poll must not use up the whole attempt.
_POLL_SECONDS = 10.0
_CANCEL_SECONDS = 5.0


class AgentSession:
    def __init__(
        self,
        context: CallContext,
        claim: ClaimedTask,
        agent: ResolvedAgent,
        recorder: ExchangeRecorder,
        report: Callable[[CallProgress], None],
        *,
        detached: Detached | None = None,
    ) -> None:
        """`report` takes what the agent says while the call goes on; `detached`: no run waits for the answer."""
        self._context = context
        self._claim = claim
        self._recorder = recorder
        self._report = report
        self._detached = detached
        self._polls = claim.polls
        agent = recorder.hide_secrets_of(agent)
        self._client = AgentClient(context, claim.task, agent, recorder, detached)

    @property
    def agent(self) -> ResolvedAgent:
        """In the dialect of the last request."""
        return self._client.agent

    @property
    def exchanges(self) -> list[ExchangeRecord]:
        return self._recorder.exchanges

    def seconds_left(self) -> float:
        deadline = self._claim.deadline
        return 0.0 if deadline is None else seconds_between(self._context.clock.now(), deadline)

    def progress(self) -> ProgressReporter:
        agent = self.agent
        return ProgressReporter(
            self._claim, self._context.clock, agent.protocol, agent.redaction, self._report
        )

    # --- the message

    async def send(self) -> Outcome:
        outcome = await self._send_once()
        if isinstance(outcome, Failed) and outcome.other_dialect:
            return await self._send_in_other_dialects(outcome)
        if isinstance(outcome, Failed) and hints_at_other_dialect(outcome.error):
            self.agent.resolver.invalidate(self.agent)
        return outcome

    async def _send_in_other_dialects(self, refusal: Failed) -> Outcome:
        """In each other dialect that the agent may understand, as long as it proves that it has not taken the work."""
        first = last = self.agent
        outcome = refusal
        while True:
            reason = outcome.error.message
            other = await last.resolver.resolve_alternative(last, reason, self._recorder.add_auxiliary)
            if not isinstance(other, ResolvedAgent):
                self._client.switch_to(first)
                return refusal
            self._client.switch_to(self._recorder.hide_secrets_of(other))
            answered = await self._send_once()
            if not (isinstance(answered, Failed) and answered.other_dialect):
                await other.resolver.adopt(other)
                return answered
            last, outcome = other, answered

    async def _send_once(self) -> Outcome:
        client, agent = self._client, self.agent
        if agent.streams and agent.batch is None:
            request = client.encode(SendOptions(), streamed=True)
            if not isinstance(request, AgentRequest):
                return request
            outcome = await self._listen(request)
            if not refuses_streams(outcome):
                return outcome
        left = self.seconds_left()
        takes_pushes = agent.dialect.pushes and not self._detached
        options = SendOptions(
            push=self._context.push_targets.target(self._claim.key) if takes_pushes else None,
            return_immediately=left > self._context.limits.max_stream_seconds,
        )
        request = client.encode(options, streamed=False)
        return await client.exchange(request, left) if isinstance(request, AgentRequest) else request

    # --- its stream

    async def _listen(self, request: AgentRequest) -> Outcome:
        """To the end, if it comes soon enough; after a cut once more, and then the task is polled."""
        with self._context.stream_timeout() as timeout, self.progress() as progress:
            result = await self._client.stream(request, self.seconds_left(), timeout, progress.add_event)
            outcome = result.outcome
            if not isinstance(outcome, Working):
                return outcome
            if result.was_cut:
                await self._resubscribe(outcome.remote_task_id, progress, timeout)
            elif timeout.has_expired:
                return outcome
            # Only the task itself has everything: a resumed stream has not.
            return await self.poll(outcome.remote_task_id)

    async def resume_stream(self, known: Working) -> Outcome:
        """Resumes a stream whose reader died; `known` is the current state of the task."""
        with self._context.stream_timeout() as timeout, self.progress() as progress:
            if await self._resubscribe(known.remote_task_id, progress, timeout) is None:
                return known
            return known if timeout.has_expired else await self.poll(known.remote_task_id)

    async def _resubscribe(
        self, remote_task_id: str, progress: ProgressReporter, stream_timeout: StreamTimeout
    ) -> StreamResult | None:
        """None: the dialect cannot, or no time is left."""
        request = self.agent.adapter.encode_resubscribe(self._claim.task, remote_task_id)
        left = self.seconds_left()
        if request is None or left <= 0:
            return None
        return await self._client.stream(
            request, left, stream_timeout, progress.add_event, remote_task_id=remote_task_id
        )

    # --- the state of the remote task

    async def poll(self, remote_task_id: str) -> Outcome:
        request = self._client.encode_poll(remote_task_id, self._polls)
        self._polls += 1
        if request is None:
            return unfinished("working")
        seconds = min(max(self.seconds_left(), 1.0), _POLL_SECONDS)
        outcome = await self._client.exchange(request, seconds, "poll")
        answered = outcome.remote_task_id
        if answered is not None and answered != remote_task_id:
            message = f"Response ID mismatch: asked for the task {remote_task_id}, got {answered}"
            return Failed(error=step_error("agent_response_id_mismatch", message))
        return after_failed_poll(outcome, remote_task_id) if isinstance(outcome, Failed) else outcome

    async def find(self) -> tuple[str | Failed | None, str]:
        """The agent's own id of a task that it may have got before, or None; and why it is called again then."""
        request = self.agent.adapter.encode_find(self._claim.task)
        if request is None:
            return None, "it does not support looking up the task"
        found = await self._client.find(request, min(self.seconds_left(), _POLL_SECONDS))
        if isinstance(found, Failed) and ERROR_CODES[found.error.code].answered:
            # Not the agent's answer to the message: that one is still open, and must not count as failed.
            return None, f"looking up the task failed: {found.error.message!r}"
        return found, "it does not have the task"

    def poll_delay(self) -> timedelta:
        """Until the next poll."""
        agent, polls = self.agent, self._claim.polls
        takes_pushes = agent.dialect.pushes and not agent.streams
        if takes_pushes and self._context.push_targets.target(self._claim.key) is not None:
            return poll_delay_with_push(polls)
        return poll_delay(polls)

    # --- its cancellation

    async def cancel_once(self, remote_task_id: str) -> None:
        """Asks the agent once to end its task, whatever it answers."""
        request = self.agent.adapter.encode_cancel(self._claim.task, remote_task_id)
        if isinstance(request, AgentRequest):
            await self._client.request_cancel(request, _CANCEL_SECONDS)

    async def cancel(self, request: AgentRequest) -> None:
        """Asks the agent to end its task, and then for a while whether it has."""
        client, clock = self._client, self._context.clock
        until = after(clock.now(), timedelta(seconds=_CANCEL_SECONDS))
        polls = 0
        outcome = await client.request_cancel(request, _CANCEL_SECONDS)
        # Some agents accept the request and work on for a while: only the end of the task confirms it.
        while isinstance(outcome, Working):
            poll = self.agent.adapter.encode_poll(self._claim.task, outcome.remote_task_id)
            pause = poll_delay(polls).total_seconds()
            left = seconds_between(clock.now(), until) - pause
            if poll is None or left <= 0:
                task_log(self._claim.task).warning(
                    log_events.CANCEL_NOT_CONFIRMED, protocol=self.agent.protocol, state=outcome.state
                )
                return
            await asyncio.sleep(pause)
            outcome = await client.request_cancel(poll, left, "poll")
            polls += 1
