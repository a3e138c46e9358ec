"""
Calls agents: the first message, what becomes of a long task, and the request to stop.

    send ----------- answered: the end, or the agent has the task and works
      |                 |
      | as a stream     |  then it is asked by a timer, ever more rarely, or when it rings (push)
      v                 |
    listen --- over, cut or long enough: its stream is taken up again after a cut, then it is asked

Every end of a call is a `Finished`; nothing is raised but a cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Literal, Protocol, TypeVar

import msgspec
import structlog

from trunkline.agents import Agent
from trunkline.bridge.attachments import AttachmentMissing, Attachments, lists_parts
from trunkline.bridge.batches import Batches
from trunkline.bridge.calls import Finished
from trunkline.bridge.endings import (
    after_failed_poll,
    doubt_of,
    error_of,
    finished_with,
    has_no_streams,
    ids_of,
    is_puzzling,
    result_of,
    unfinished,
    with_doubt,
)
from trunkline.bridge.news import News
from trunkline.bridge.partners import Partner
from trunkline.bridge.sides import Sides, Way
from trunkline.bridge.streams import Heard, Patience
from trunkline.bridge.talk import Talk
from trunkline.bridge.task_log import task_log
from trunkline.bridge.task_secrets import open_secrets
from trunkline.clock import Clock, Instant, after, seconds_between
from trunkline.errors import Unavailable
from trunkline.messages import ERROR_CODES, AgentResult, AgentTask, Progress, StepError
from trunkline.policies import RetryPolicy
from trunkline.protocols import (
    AgentRequest,
    Failed,
    Interrupted,
    Outcome,
    PushTarget,
    Succeeded,
    Wishes,
    Working,
)
from trunkline.services.directory import AgentDirectory
from trunkline.services.secrets import Secrets
from trunkline.stores.base import ClaimedTask, ExchangeRecord, TaskAnswer, TaskKey
from trunkline.telemetry import names
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.redaction import Redaction
from trunkline.telemetry.traces import Traces
from trunkline.transports.base import Transport

log = structlog.stdlib.get_logger()

_Read = TypeVar("_Read")

# A long task is asked soon at first, then ever more rarely.
_FIRST_POLL = timedelta(milliseconds=200)
_POLL_GROWTH = 1.5
_LONGEST_POLL = timedelta(seconds=5)
# One that rings is asked all the same, in case that a ring is lost.
_FIRST_POLL_OF_RINGING = timedelta(seconds=1)
_POLL_GROWTH_OF_RINGING = 3
_LONGEST_POLL_OF_RINGING = timedelta(minutes=5)
# One question must not use up the whole attempt.
_POLL_SECONDS = 10.0
_CANCEL_SECONDS = 5.0
# A store that is away is asked again at this pace.
_STORE_PAUSE = 0.5


class PushTargets(Protocol):
    def target(self, key: TaskKey) -> PushTarget | None:
        """Where the agent may ring for this task; None: it cannot reach us."""
        ...


class Manners(msgspec.Struct, frozen=True, kw_only=True):
    """How long a line is held, and how much is listened to."""

    # A task that takes longer than this holds neither a socket nor a lease.
    line_seconds: float = 60.0
    most_answer_bytes: int = 16 * 1024 * 1024


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What another side has made of a task."""

    outcome: Succeeded | Failed | Interrupted
    # What was spoken to it, if anything was.
    protocol: str | None = None
    # Hides what nobody may see of its words.
    redaction: Redaction = Redaction()
    exchanges: Sequence[ExchangeRecord] = ()


class AgentInvoker:
    def __init__(
        self,
        transport: Transport,
        batches: Batches,
        sides: Sides,
        directory: AgentDirectory,
        clock: Clock,
        metrics: Metrics,
        *,
        manners: Manners,
        pushes: PushTargets,
        attachments: Attachments,
        secrets: Secrets,
        traces: Traces,
    ) -> None:
        self._transport = transport
        self._batches = batches
        self._sides = sides
        self._directory = directory
        self._clock = clock
        self._metrics = metrics
        self._manners = manners
        self._pushes = pushes
        self._attachments = attachments
        self._secrets = secrets
        self._traces = traces
        self._listening: set[Patience] = set()
        self._is_leaving = False

    def let_go(self) -> None:
        self._is_leaving = True
        for patience in self._listening:
            patience.leave()

    async def call(self, claim: ClaimedTask, hear: Callable[[Finished], None]) -> Finished:
        if claim.called_at is None:
            claim = msgspec.structs.replace(claim, called_at=self._clock.now())
        agent = await self._agent(claim.task.agent)
        if agent is None:
            message = f"No agent is registered under the name {claim.task.agent}."
            return self.failed(claim, error_of("agent_unknown", message))
        try:
            claim = await self._with_files(claim)
        except AttachmentMissing as exc:
            return self.failed(claim, exc.error, retry=agent.retry)
        way = await self._way(agent, claim.task)
        talk = self._talk(claim, way)
        try:
            finished = await self._call(talk, way, claim, hear)
        except asyncio.CancelledError:
            # What was said until then belongs on the wire all the same.
            if talk.exchanges:
                hear(Finished(claim=claim, answer=None, result=None, exchanges=talk.exchanges))
            raise
        except Exception as exc:
            told = talk.without_secrets(exc)
            if told is exc:
                raise
            # Whoever logs it does not know what must not be shown.
            raise told from None
        if way.moment is not None:
            finished.way = way
        return finished

    async def _call(
        self, talk: Talk, way: Way, claim: ClaimedTask, hear: Callable[[Finished], None]
    ) -> Finished:
        task, agent = claim.task, way.agent
        unknown = await self._open_secrets(talk, task) if task.secrets or task.told_secrets else None
        if unknown is not None and not self._is_pollable(claim):
            return self.failed(claim, with_doubt(unknown, claim), retry=agent.retry)
        partner = await way.partners.of(agent, talk.note)
        if isinstance(partner, StepError):
            return self.failed(claim, partner, retry=agent.retry, exchanges=talk.exchanges)
        if unknown is not None and claim.remote_task_id is not None:
            # Whatever the agent says might repeat what we could not hide: it is asked when the secret is there again.
            later = Working(remote_task_id=claim.remote_task_id, state="working")
            return await self._finish(claim, talk, partner, later, claim.deadline or self._clock.now())
        partner = talk.hiding(partner)
        if claim.remote_task_id is not None:
            outcome = await self._ask(talk, partner, claim, claim.remote_task_id)
            if isinstance(outcome, Working) and outcome.text:
                News(claim, self._clock, partner.protocol, partner.redaction, hear).say_once(outcome.text)
            # Never asked before: whoever listened to its stream is gone.
            if isinstance(outcome, Working) and claim.polls == 0 and partner.streams:
                outcome = await self._take_up(talk, partner, claim, outcome, hear)
            return await self._finish(claim, talk, partner, outcome, claim.deadline or self._clock.now())
        milliseconds = claim.task.timeout_ms or agent.timeout_ms
        deadline = after(self._clock.now(), timedelta(milliseconds=milliseconds))
        claim = msgspec.structs.replace(claim, deadline=deadline)
        doubt = doubt_of(claim)
        if doubt is not None:
            settled = await self._resolve(talk, partner, claim, doubt, hear)
            if settled is not None:
                return await self._finish(claim, talk, partner, settled, deadline)
        partner, outcome = await self._send(talk, partner, claim, hear)
        return await self._finish(claim, talk, partner, outcome, deadline)

    async def _with_files(self, claim: ClaimedTask) -> ClaimedTask:
        if not lists_parts(claim.task):
            return claim
        brought = await self._patiently(lambda: self._attachments.bring(claim.task))
        return claim if brought is claim.task else msgspec.structs.replace(claim, task=brought)

    async def _open_secrets(self, talk: Talk, task: AgentTask) -> StepError | None:
        """Gives the talk the secrets of its task; why that is not possible."""
        opened = await self._patiently(lambda: open_secrets(task, self._secrets))
        if isinstance(opened, StepError):
            task_log(task).warning(names.SECRET_NOT_KNOWN, code=opened.code, error=opened.message)
            return opened
        talk.use(opened)
        return None

    def _is_pollable(self, claim: ClaimedTask) -> bool:
        return claim.remote_task_id is not None and self._left(claim) > 0

    def _talk(
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
            notes=() if way is None else way.notes,
            beside=beside,
        )

    async def _way(self, agent: Agent, task: AgentTask) -> Way:
        # 0: the run was accepted before any agent moved.
        if not task.routes:
            return self._sides.only(agent)
        return await self._patiently(lambda: self._sides.of(agent, task))

    async def _agent(self, name: str) -> Agent | None:
        return self._directory.known(name) or await self._patiently(lambda: self._directory.get(name))

    async def _patiently(self, read: Callable[[], Awaitable[_Read]]) -> _Read:
        """Waits while a store is away: the agent has no part in it, so nothing has failed."""
        while True:
            try:
                return await read()
            except Unavailable as exc:
                log.error(names.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
                await asyncio.sleep(_STORE_PAUSE)

    # --- the same message again

    async def _resolve(
        self, talk: Talk, partner: Partner, claim: ClaimedTask, doubt: str, hear: Callable[[Finished], None]
    ) -> Outcome | None:
        """
        What is to be done about a message that the agent may have got before; None: it is sent again.

        The reason is news for the run's history.
        """
        policy = partner.agent.options.resend
        if policy == "never":
            return Failed(error=error_of("outcome_unknown", f"{doubt} The agent is not to be called twice."))
        why = "the agent takes the same message twice"
        if policy == "ask_first":
            found, why = await self._find(talk, partner, claim)
            if isinstance(found, Failed):
                return found
            if found is not None:
                return await self._ask(talk, partner, claim, found)
        news = News(claim, self._clock, partner.protocol, partner.redaction, hear)
        news.say(Progress(kind="called_again", text=f"{doubt} Called again with the same message: {why}."))
        news.end()
        return None

    async def _find(
        self, talk: Talk, partner: Partner, claim: ClaimedTask
    ) -> tuple[str | Failed | None, str]:
        request = partner.adapter.encode_find(claim.task)
        if request is None:
            return None, "it cannot be asked whether it has the task"
        found = await talk.find(partner, request, min(self._left(claim), _POLL_SECONDS))
        if isinstance(found, Failed) and ERROR_CODES[found.error.code].answered:
            # Not the agent's answer to the message: that one is still open, and must not count as failed.
            return None, f"asked whether it has the task, it says {found.error.message!r}"
        return found, "it says that it does not have the task"

    # --- the first message

    async def _send(
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
        left = self._left(claim)
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
            heard = await talk.stream(partner, request, self._left(claim), patience, news.add)
            outcome = heard.outcome
            if not isinstance(outcome, Working):
                return outcome
            if heard.was_cut:
                await self._listen_again(talk, partner, claim, outcome.remote_task_id, news, patience)
            elif patience.is_over:
                return outcome
            # Only the task itself has everything: a stream that was taken up again has not.
            return await self._ask(talk, partner, claim, outcome.remote_task_id)

    async def _take_up(
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
            return known if patience.is_over else await self._ask(talk, partner, claim, known.remote_task_id)

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
        left = self._left(claim)
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
        if self._is_leaving:
            patience.leave()
        try:
            yield news, patience
        finally:
            news.end()
            self._listening.discard(patience)

    # --- how a task stands

    async def _ask(self, talk: Talk, partner: Partner, claim: ClaimedTask, remote_task_id: str) -> Outcome:
        request = partner.adapter.encode_poll(claim.task, remote_task_id)
        if request is None:
            return unfinished("working")
        seconds = min(max(self._left(claim), 1.0), _POLL_SECONDS)
        outcome = await talk.exchange(partner, request, seconds, "poll")
        answered = outcome.remote_task_id
        if answered is not None and answered != remote_task_id:
            message = f"Response ID mismatch: asked for the task {remote_task_id}, got {answered}"
            return Failed(error=error_of("agent_response_id_mismatch", message))
        return after_failed_poll(outcome, remote_task_id) if isinstance(outcome, Failed) else outcome

    async def _finish(
        self, claim: ClaimedTask, talk: Talk, partner: Partner, outcome: Outcome, deadline: Instant
    ) -> Finished:
        if isinstance(outcome, Working):
            if seconds_between(self._clock.now(), deadline) > 0:
                return self._working(claim, talk, partner, outcome, deadline)
            outcome = unfinished(outcome.state)
        if isinstance(outcome, Succeeded) and self._attachments.may_move(outcome):
            answered = outcome
            outcome = await self._patiently(lambda: self._attachments.put_away(claim.task.run_id, answered))
        result = result_of(claim, outcome, self._clock.now(), partner)
        self._metrics.attempts.labels(result.status if result.error is None else result.error.code).inc()
        return finished_with(claim, talk.exchanges, result)

    def _working(
        self, claim: ClaimedTask, talk: Talk, partner: Partner, outcome: Working, deadline: Instant
    ) -> Finished:
        result = AgentResult(
            **ids_of(claim),
            status="working",
            at=self._clock.now(),
            protocol=partner.protocol,
            context_id=outcome.context_id,
            remote_task_id=outcome.remote_task_id,
        )
        return Finished(
            claim=claim,
            answer=TaskAnswer(
                key=claim.key,
                epoch=claim.epoch,
                poll_at=min(after(self._clock.now(), self._pause(partner, claim)), deadline),
                remote_task_id=outcome.remote_task_id,
                context_id=outcome.context_id,
                deadline=deadline,
                # One that is let go at a stop is left as it is: the next process takes its stream up.
                polls=claim.polls if self._is_leaving else claim.polls + 1,
            ),
            # Once is enough: the next answers say the same.
            result=result if claim.polls == 0 else None,
            exchanges=talk.exchanges,
        )

    def _pause(self, partner: Partner, claim: ClaimedTask) -> timedelta:
        dialect = partner.dialect
        if dialect.pushes and not partner.streams and self._pushes.target(claim.key) is not None:
            return min(
                _FIRST_POLL_OF_RINGING * _POLL_GROWTH_OF_RINGING ** min(claim.polls, 9),
                _LONGEST_POLL_OF_RINGING,
            )
        return min(_FIRST_POLL * _POLL_GROWTH ** min(claim.polls, 99), _LONGEST_POLL)

    # --- the same task for another side

    async def call_beside(self, claim: ClaimedTask, way: Way) -> Beside:
        """
        The task of `claim`, which has been done, given to another side of its agent, to its end or its timeout.

        Nothing of it is written anywhere. The conversation of the one side is not the other's.
        """
        milliseconds = claim.task.timeout_ms or way.agent.timeout_ms
        deadline = after(self._clock.now(), timedelta(milliseconds=milliseconds))
        task = msgspec.structs.replace(claim.task, context_id=None, doubtful=False)
        claim = ClaimedTask(key=claim.key, task=task, epoch=1, deadline=deadline)
        return await self._told_beside(self._talk(claim, way, beside="shadow"), claim, way)

    async def try_out(self, task: AgentTask, way: Way) -> Beside:
        """A task that belongs to no run, to its end or its timeout. Nothing of it is written anywhere."""
        milliseconds = task.timeout_ms or way.agent.timeout_ms
        deadline = after(self._clock.now(), timedelta(milliseconds=milliseconds))
        claim = ClaimedTask(key=TaskKey(task.task_id, task.attempt), task=task, epoch=1, deadline=deadline)
        return await self._told_beside(self._talk(claim, way, beside="trial"), claim, way)

    async def _told_beside(self, talk: Talk, claim: ClaimedTask, way: Way) -> Beside:
        try:
            return await self._call_beside(talk, claim, way)
        except Exception as exc:
            told = talk.without_secrets(exc)
            if told is exc:
                raise
            # As in `call`: whoever logs it does not know.
            raise told from None

    async def _call_beside(self, talk: Talk, claim: ClaimedTask, way: Way) -> Beside:
        task = claim.task
        unknown = await self._open_secrets(talk, task) if task.secrets or task.told_secrets else None
        if unknown is not None:
            return Beside(outcome=Failed(error=unknown))
        partner = await way.partners.of(way.agent, talk.note)
        if isinstance(partner, StepError):
            return Beside(outcome=Failed(error=partner), exchanges=talk.exchanges)
        partner, outcome = await self._send(talk, talk.hiding(partner), claim, _not_heard)
        pause = _FIRST_POLL
        while isinstance(outcome, Working):
            if self._left(claim) <= pause.total_seconds():
                await self._give_up(talk, partner, claim, outcome.remote_task_id)
                outcome = unfinished(outcome.state)
                break
            await asyncio.sleep(pause.total_seconds())
            pause = min(pause * _POLL_GROWTH, _LONGEST_POLL)
            outcome = await self._ask(talk, partner, claim, outcome.remote_task_id)
        if talk.beside == "trial" and isinstance(outcome, Interrupted) and outcome.remote_task_id is not None:
            # Nobody will answer its question.
            await self._give_up(talk, partner, claim, outcome.remote_task_id)
        return Beside(
            outcome=outcome,
            protocol=partner.protocol,
            redaction=partner.redaction,
            exchanges=talk.exchanges,
        )

    async def _give_up(self, talk: Talk, partner: Partner, claim: ClaimedTask, remote_task_id: str) -> None:
        request = partner.adapter.encode_cancel(claim.task, remote_task_id)
        if isinstance(request, AgentRequest):
            await talk.ask_to_stop(partner, request, _CANCEL_SECONDS)

    # --- the end

    async def tell_cancelled(self, claim: ClaimedTask, *, ended: bool) -> Finished:
        agent = await self._agent(claim.task.agent)
        way = None if agent is None else await self._way(agent, claim.task)
        talk = self._talk(claim, way)
        partner = None if way is None else await way.partners.of(way.agent)
        if isinstance(partner, Partner) and claim.remote_task_id is not None:
            request = partner.adapter.encode_cancel(claim.task, claim.remote_task_id)
            # What the agent says to it might repeat a secret that we could not hide.
            if isinstance(request, AgentRequest) and await self._open_secrets(talk, claim.task) is None:
                await self._stop(talk, talk.hiding(partner), claim, request)
        if not ended:
            return Finished(claim=claim, answer=None, result=None, exchanges=talk.exchanges)
        return finished_with(claim, talk.exchanges, self._stop_result(claim))

    async def _stop(self, talk: Talk, partner: Partner, claim: ClaimedTask, request: AgentRequest) -> None:
        until = after(self._clock.now(), timedelta(seconds=_CANCEL_SECONDS))
        pause = _FIRST_POLL
        outcome = await talk.ask_to_stop(partner, request, _CANCEL_SECONDS)
        # Some agents take the wish and work on for a while: only the end of the task confirms it.
        while isinstance(outcome, Working):
            question = partner.adapter.encode_poll(claim.task, outcome.remote_task_id)
            left = seconds_between(self._clock.now(), until) - pause.total_seconds()
            if question is None or left <= 0:
                task_log(claim.task).warning(
                    names.CANCEL_NOT_CONFIRMED, protocol=partner.protocol, state=outcome.state
                )
                return
            await asyncio.sleep(pause.total_seconds())
            outcome = await talk.ask_to_stop(partner, question, left, "poll")
            pause *= _POLL_GROWTH

    def stopped(self, claim: ClaimedTask) -> Finished:
        return finished_with(claim, [], self._stop_result(claim))

    def failed(
        self,
        claim: ClaimedTask,
        error: StepError,
        retry: RetryPolicy | None = None,
        exchanges: Sequence[ExchangeRecord] = (),
    ) -> Finished:
        self._metrics.attempts.labels(error.code).inc()
        task_log(claim.task).error(names.CALL_FAILED, code=error.code, error=error.message)
        result = AgentResult(**ids_of(claim), status="error", at=self._clock.now(), error=error, retry=retry)
        return finished_with(claim, list(exchanges), result)

    def _stop_result(self, claim: ClaimedTask) -> AgentResult:
        return AgentResult(**ids_of(claim), status="cancelled", at=self._clock.now())

    def _left(self, claim: ClaimedTask) -> float:
        return 0.0 if claim.deadline is None else seconds_between(self._clock.now(), claim.deadline)


def _not_heard(news: Finished) -> None:
    """Of a call that is nobody's."""
    del news
