"""
Calls agents for runs: the first message, the same message again, what becomes of a long task, and its end.

A task that an agent works on is asked by a timer, ever more rarely, or when the agent rings (push). What is said to the
agent is in messenger.py. Every end of a call is a `Finished`; nothing is raised but a cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import msgspec

from trunkline.agents import Agent
from trunkline.bridge.attachments import AttachmentMissing, Attachments, lists_parts
from trunkline.bridge.calls import Finished
from trunkline.bridge.endings import (
    doubt_of,
    error_of,
    finished_with,
    ids_of,
    result_of,
    unfinished,
    with_doubt,
)
from trunkline.bridge.messenger import Messenger
from trunkline.bridge.news import News
from trunkline.bridge.partners import Partner
from trunkline.bridge.sides import Sides, Way
from trunkline.bridge.store_waits import patiently
from trunkline.bridge.talk import Talk
from trunkline.bridge.task_log import task_log
from trunkline.clock import Clock, Instant, after, seconds_between
from trunkline.messages import AgentResult, AgentTask, Progress, StepError
from trunkline.policies import RetryPolicy
from trunkline.protocols import AgentRequest, Failed, Outcome, Succeeded, Working
from trunkline.services.directory import AgentDirectory
from trunkline.stores.base import ClaimedTask, ExchangeRecord, TaskAnswer
from trunkline.telemetry import names
from trunkline.telemetry.metrics import Metrics


class AgentInvoker:
    def __init__(
        self,
        messenger: Messenger,
        sides: Sides,
        directory: AgentDirectory,
        clock: Clock,
        metrics: Metrics,
        attachments: Attachments,
    ) -> None:
        self._messenger = messenger
        self._sides = sides
        self._directory = directory
        self._clock = clock
        self._metrics = metrics
        self._attachments = attachments

    def let_go(self) -> None:
        self._messenger.let_go()

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
        talk = self._messenger.talk(claim, way)
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
        task, agent, messenger = claim.task, way.agent, self._messenger
        unknown = await messenger.open_secrets(talk, task) if task.secrets or task.told_secrets else None
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
            outcome = await messenger.ask(talk, partner, claim, claim.remote_task_id)
            if isinstance(outcome, Working) and outcome.text:
                News(claim, self._clock, partner.protocol, partner.redaction, hear).say_once(outcome.text)
            # Never asked before: whoever listened to its stream is gone.
            if isinstance(outcome, Working) and claim.polls == 0 and partner.streams:
                outcome = await messenger.take_up(talk, partner, claim, outcome, hear)
            return await self._finish(claim, talk, partner, outcome, claim.deadline or self._clock.now())
        milliseconds = claim.task.timeout_ms or agent.timeout_ms
        deadline = after(self._clock.now(), timedelta(milliseconds=milliseconds))
        claim = msgspec.structs.replace(claim, deadline=deadline)
        doubt = doubt_of(claim)
        if doubt is not None:
            settled = await self._resolve(talk, partner, claim, doubt, hear)
            if settled is not None:
                return await self._finish(claim, talk, partner, settled, deadline)
        partner, outcome = await messenger.send(talk, partner, claim, hear)
        return await self._finish(claim, talk, partner, outcome, deadline)

    async def _with_files(self, claim: ClaimedTask) -> ClaimedTask:
        if not lists_parts(claim.task):
            return claim
        brought = await patiently(lambda: self._attachments.bring(claim.task))
        return claim if brought is claim.task else msgspec.structs.replace(claim, task=brought)

    def _is_pollable(self, claim: ClaimedTask) -> bool:
        return claim.remote_task_id is not None and self._messenger.seconds_left(claim) > 0

    async def _way(self, agent: Agent, task: AgentTask) -> Way:
        # 0: the run was accepted before any agent moved.
        if not task.routes:
            return self._sides.only(agent)
        return await patiently(lambda: self._sides.of(agent, task))

    async def _agent(self, name: str) -> Agent | None:
        return self._directory.known(name) or await patiently(lambda: self._directory.get(name))

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
            found, why = await self._messenger.find(talk, partner, claim)
            if isinstance(found, Failed):
                return found
            if found is not None:
                return await self._messenger.ask(talk, partner, claim, found)
        news = News(claim, self._clock, partner.protocol, partner.redaction, hear)
        news.say(Progress(kind="called_again", text=f"{doubt} Called again with the same message: {why}."))
        news.end()
        return None

    # --- how it stands now

    async def _finish(
        self, claim: ClaimedTask, talk: Talk, partner: Partner, outcome: Outcome, deadline: Instant
    ) -> Finished:
        if isinstance(outcome, Working):
            if seconds_between(self._clock.now(), deadline) > 0:
                return self._working(claim, talk, partner, outcome, deadline)
            outcome = unfinished(outcome.state)
        if isinstance(outcome, Succeeded) and self._attachments.may_move(outcome):
            answered = outcome
            outcome = await patiently(lambda: self._attachments.put_away(claim.task.run_id, answered))
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
                poll_at=min(after(self._clock.now(), self._messenger.pause(partner, claim)), deadline),
                remote_task_id=outcome.remote_task_id,
                context_id=outcome.context_id,
                deadline=deadline,
                # One that is let go at a stop is left as it is: the next process takes its stream up.
                polls=claim.polls if self._messenger.is_leaving else claim.polls + 1,
            ),
            # Once is enough: the next answers say the same.
            result=result if claim.polls == 0 else None,
            exchanges=talk.exchanges,
        )

    # --- the end

    async def tell_cancelled(self, claim: ClaimedTask, *, ended: bool) -> Finished:
        messenger = self._messenger
        agent = await self._agent(claim.task.agent)
        way = None if agent is None else await self._way(agent, claim.task)
        talk = messenger.talk(claim, way)
        partner = None if way is None else await way.partners.of(way.agent)
        if isinstance(partner, Partner) and claim.remote_task_id is not None:
            request = partner.adapter.encode_cancel(claim.task, claim.remote_task_id)
            # What the agent says to it might repeat a secret that we could not hide.
            if isinstance(request, AgentRequest) and await messenger.open_secrets(talk, claim.task) is None:
                await messenger.stop(talk, talk.hiding(partner), claim, request)
        if not ended:
            return Finished(claim=claim, answer=None, result=None, exchanges=talk.exchanges)
        return finished_with(claim, talk.exchanges, self._stop_result(claim))

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
