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
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Literal, Protocol

import msgspec

from trunkline.bridge.batches import Batches
from trunkline.bridge.calls import Finished
from trunkline.bridge.endings import after_failed_poll, error_of, has_no_streams, is_puzzling, unfinished
from trunkline.bridge.exchanges import MAX_BODY_BYTES
from trunkline.bridge.news import News
from trunkline.bridge.partners import Partner
from trunkline.bridge.polling import pause_after, pause_of_ringing_after
from trunkline.bridge.sides import Way
from trunkline.bridge.store_waits import patiently
from trunkline.bridge.streams import Heard, Patience
from trunkline.bridge.talk import Talk
from trunkline.bridge.task_log import task_log
from trunkline.bridge.task_secrets import open_secrets
from trunkline.clock import Clock, after, seconds_between
from trunkline.messages import ERROR_CODES, AgentTask, StepError
from trunkline.protocols import AgentRequest, Failed, Outcome, PushTarget, Wishes, Working
from trunkline.services.secrets import Secrets
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


class Manners(msgspec.Struct, frozen=True, kw_only=True):
    """How long a line is held, how much is listened to, and how much of it is kept."""

    # A task that takes longer than this holds neither a socket nor a lease.
    line_seconds: float = 60.0
    most_answer_bytes: int = 16 * 1024 * 1024
    # Of a body, for the wire's record.
    most_wire_bytes: int = MAX_BODY_BYTES


class Messenger:
    def __init__(
        self,
        transport: Transport,
        batches: Batches,
        clock: Clock,
        metrics: Metrics,
        *,
        manners: Manners,
        pushes: PushTargets,
        secrets: Secrets,
        traces: Traces,
    ) -> None:
        self._transport = transport
        self._batches = batches
        self._clock = clock
        self._metrics = metrics
        self._manners = manners
        self._pushes = pushes
        self._secrets = secrets
        self._traces = traces
        self._listening: set[Patience] = set()
        self.is_leaving = False

    def let_go(self) -> None:
        """At a stop: whoever listens to a stream leaves it."""
        self.is_leaving = True
        for patience in self._listening:
            patience.leave()

    def seconds_left(self, claim: ClaimedTask) -> float:
        return 0.0 if claim.deadline is None else seconds_between(self._clock.now(), claim.deadline)

    def talk(
        self, claim: ClaimedTask, way: Way | None, *, beside: Literal["shadow", "trial"] | None = None
    ) -> Talk:
        return Talk(
            self._transport,
            self._batches,
            self._clock,
            self._metrics,
            self._traces,
            claim,
            self._manners.most_answer_bytes,
            self._manners.most_wire_bytes,
            notes=() if way is None else way.notes,
            beside=beside,
        )

    async def open_secrets(self, talk: Talk, task: AgentTask) -> StepError | None:
        """Gives the talk the secrets of its task; why that is not possible."""
        opened = await patiently(lambda: open_secrets(task, self._secrets))
        if isinstance(opened, StepError):
            task_log(task).warning(names.SECRET_NOT_KNOWN, code=opened.code, error=opened.message)
            return opened
        talk.use(opened)
        return None

    # --- the message

    async def send(
        self, talk: Talk, partner: Partner, claim: ClaimedTask, hear: Callable[[Finished], None]
    ) -> tuple[Partner, Outcome]:
        outcome = await self._send_once(talk, partner, claim, hear)
        if isinstance(outcome, Failed) and outcome.other_dialect:
            return await self._send_differently(talk, partner, outcome, claim, hear)
        if isinstance(outcome, Failed) and is_puzzling(outcome.error):
            partner.kept_by.doubt(partner)
        return partner, outcome

    async def _send_differently(
        self,
        talk: Talk,
        refused: Partner,
        refusal: Failed,
        claim: ClaimedTask,
        hear: Callable[[Finished], None],
    ) -> tuple[Partner, Outcome]:
        """In each other way that the agent may understand, as long as it proves that it has not taken the work."""
        partner, outcome = refused, refusal
        while True:
            other = await partner.kept_by.another(partner, outcome.error.message, talk.note)
            if not isinstance(other, Partner):
                return refused, refusal
            hiding = talk.hiding(other)
            second = await self._send_once(talk, hiding, claim, hear)
            if not (isinstance(second, Failed) and second.other_dialect):
                await other.kept_by.adopt(other)
                return hiding, second
            partner, outcome = other, second

    async def _send_once(
        self, talk: Talk, partner: Partner, claim: ClaimedTask, hear: Callable[[Finished], None]
    ) -> Outcome:
        if partner.streams and partner.batch is None:
            request = talk.encode(partner, Wishes(), streamed=True)
            if not isinstance(request, AgentRequest):
                return request
            outcome = await self._listen(talk, partner, claim, request, hear)
            if not has_no_streams(outcome):
                return outcome
        left = self.seconds_left(claim)
        wishes = Wishes(
            push=self._pushes.target(claim.key) if partner.dialect.pushes and not talk.beside else None,
            returns_at_once=left > self._manners.line_seconds,
        )
        request = talk.encode(partner, wishes, streamed=False)
        if not isinstance(request, AgentRequest):
            return request
        return await talk.exchange(partner, request, left)

    async def _listen(
        self,
        talk: Talk,
        partner: Partner,
        claim: ClaimedTask,
        request: AgentRequest,
        hear: Callable[[Finished], None],
    ) -> Outcome:
        """To the end, if it comes soon enough; after a cut once more, and then the agent is asked."""
        with self._listener(claim, partner, hear) as (news, patience):
            heard = await talk.stream(partner, request, self.seconds_left(claim), patience, news.add)
            outcome = heard.outcome
            if not isinstance(outcome, Working):
                return outcome
            if heard.was_cut:
                await self._listen_again(talk, partner, claim, outcome.remote_task_id, news, patience)
            elif patience.is_over:
                return outcome
            # Only the task itself has everything: a stream that was taken up again has not.
            return await self.ask(talk, partner, claim, outcome.remote_task_id)

    async def take_up(
        self,
        talk: Talk,
        partner: Partner,
        claim: ClaimedTask,
        known: Working,
        hear: Callable[[Finished], None],
    ) -> Outcome:
        """Goes on with a stream whose listener has died; `known` is how the task stands now."""
        with self._listener(claim, partner, hear) as (news, patience):
            if await self._listen_again(talk, partner, claim, known.remote_task_id, news, patience) is None:
                return known
            return known if patience.is_over else await self.ask(talk, partner, claim, known.remote_task_id)

    async def _listen_again(
        self,
        talk: Talk,
        partner: Partner,
        claim: ClaimedTask,
        remote_task_id: str,
        news: News,
        patience: Patience,
    ) -> Heard | None:
        """None: there is no way to, or no time."""
        again = partner.adapter.encode_resubscribe(claim.task, remote_task_id)
        left = self.seconds_left(claim)
        if again is None or left <= 0:
            return None
        return await talk.stream(partner, again, left, patience, news.add, remote_task_id=remote_task_id)

    @contextmanager
    def _listener(
        self, claim: ClaimedTask, partner: Partner, hear: Callable[[Finished], None]
    ) -> Generator[tuple[News, Patience]]:
        news = News(claim, self._clock, partner.protocol, partner.redaction, hear)
        patience = Patience(self._manners.line_seconds)
        self._listening.add(patience)
        if self.is_leaving:
            patience.leave()
        try:
            yield news, patience
        finally:
            news.end()
            self._listening.discard(patience)

    # --- how the task stands

    async def ask(self, talk: Talk, partner: Partner, claim: ClaimedTask, remote_task_id: str) -> Outcome:
        request = partner.adapter.encode_poll(claim.task, remote_task_id)
        if request is None:
            return unfinished("working")
        seconds = min(max(self.seconds_left(claim), 1.0), _POLL_SECONDS)
        outcome = await talk.exchange(partner, request, seconds, "poll")
        answered = outcome.remote_task_id
        if answered is not None and answered != remote_task_id:
            message = f"Response ID mismatch: asked for the task {remote_task_id}, got {answered}"
            return Failed(error=error_of("agent_response_id_mismatch", message))
        return after_failed_poll(outcome, remote_task_id) if isinstance(outcome, Failed) else outcome

    async def find(self, talk: Talk, partner: Partner, claim: ClaimedTask) -> tuple[str | Failed | None, str]:
        """The agent's own id of a task that it may have got before, or None; and why it is called again then."""
        request = partner.adapter.encode_find(claim.task)
        if request is None:
            return None, "it cannot be asked whether it has the task"
        found = await talk.find(partner, request, min(self.seconds_left(claim), _POLL_SECONDS))
        if isinstance(found, Failed) and ERROR_CODES[found.error.code].answered:
            # Not the agent's answer to the message: that one is still open, and must not count as failed.
            return None, f"asked whether it has the task, it says {found.error.message!r}"
        return found, "it says that it does not have the task"

    def pause(self, partner: Partner, claim: ClaimedTask) -> timedelta:
        """Until it is asked again."""
        rings = partner.dialect.pushes and not partner.streams
        if rings and self._pushes.target(claim.key) is not None:
            return pause_of_ringing_after(claim.polls)
        return pause_after(claim.polls)

    # --- the wish to stop

    async def give_up(self, talk: Talk, partner: Partner, claim: ClaimedTask, remote_task_id: str) -> None:
        """Asks the agent once to end its task, whatever it says."""
        request = partner.adapter.encode_cancel(claim.task, remote_task_id)
        if isinstance(request, AgentRequest):
            await talk.ask_to_stop(partner, request, _CANCEL_SECONDS)

    async def stop(self, talk: Talk, partner: Partner, claim: ClaimedTask, request: AgentRequest) -> None:
        """Asks the agent to end its task, and then for a while whether it has."""
        until = after(self._clock.now(), timedelta(seconds=_CANCEL_SECONDS))
        polls = 0
        outcome = await talk.ask_to_stop(partner, request, _CANCEL_SECONDS)
        # Some agents take the wish and work on for a while: only the end of the task confirms it.
        while isinstance(outcome, Working):
            question = partner.adapter.encode_poll(claim.task, outcome.remote_task_id)
            pause = pause_after(polls).total_seconds()
            left = seconds_between(self._clock.now(), until) - pause
            if question is None or left <= 0:
                task_log(claim.task).warning(
                    names.CANCEL_NOT_CONFIRMED, protocol=partner.protocol, state=outcome.state
                )
                return
            await asyncio.sleep(pause)
            outcome = await talk.ask_to_stop(partner, question, left, "poll")
            polls += 1
