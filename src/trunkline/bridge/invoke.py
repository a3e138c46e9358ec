"""
Calls agents: the first message, the questions how a long task stands, and the request to stop.

Every end of a call is a `Finished`; nothing is raised but a cancellation.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TypedDict, assert_never

import msgspec

from trunkline.agents import Agent
from trunkline.bridge.calls import Finished
from trunkline.bridge.partners import Partner, Partners
from trunkline.bridge.talk import Talk
from trunkline.bridge.task_log import task_log
from trunkline.bridge.transports.base import Transport
from trunkline.clock import Clock, Instant, after, seconds_between
from trunkline.errors import Unavailable
from trunkline.messages import ERROR_CODES, AgentResult, StepError, fix_for
from trunkline.policies import RetryPolicy
from trunkline.protocols import AgentRequest, Failed, Interrupted, Outcome, Succeeded, Working
from trunkline.services.directory import AgentDirectory
from trunkline.stores.base import ClaimedTask, ExchangeRecord, TaskAnswer
from trunkline.telemetry import names
from trunkline.telemetry.metrics import Metrics

# A long task is asked soon at first, then ever more rarely.
_FIRST_POLL = timedelta(milliseconds=200)
_POLL_GROWTH = 1.5
_LONGEST_POLL = timedelta(seconds=5)
# One question must not use up the whole attempt.
_POLL_SECONDS = 10.0
_CANCEL_SECONDS = 5.0
# A store that is away is asked again at this pace.
_STORE_PAUSE = 0.5


class AgentInvoker:
    def __init__(
        self,
        transport: Transport,
        partners: Partners,
        directory: AgentDirectory,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._transport = transport
        self._partners = partners
        self._directory = directory
        self._clock = clock
        self._metrics = metrics

    async def call(self, claim: ClaimedTask) -> Finished:
        agent = await self._agent(claim.task.agent)
        if agent is None:
            message = f"No agent is registered under the name {claim.task.agent}."
            return self.failed(claim, _error("agent_unknown", message))
        partner = await self._partners.of(agent)
        if isinstance(partner, StepError):
            return self.failed(claim, partner, retry=agent.retry)
        talk = Talk(self._transport, self._clock, self._metrics, claim)
        if claim.remote_task_id is not None:
            return await self._poll(talk, partner, claim, claim.remote_task_id)
        milliseconds = claim.task.timeout_ms or agent.timeout_ms
        deadline = after(self._clock.now(), timedelta(milliseconds=milliseconds))
        partner, outcome = await self._send(talk, partner, deadline)
        return self._finish(claim, talk, partner, outcome, deadline)

    async def _agent(self, name: str) -> Agent | None:
        """Waits while the store is away: nothing has been sent yet, so nothing has failed."""
        while True:
            try:
                return await self._directory.get(name)
            except Unavailable:
                await asyncio.sleep(_STORE_PAUSE)

    async def _send(self, talk: Talk, partner: Partner, deadline: Instant) -> tuple[Partner, Outcome]:
        outcome = await self._send_once(talk, partner, deadline)
        if _is_refused(outcome):
            other = await self._partners.another(partner)
            if isinstance(other, Partner):
                second = await self._send_once(talk, other, deadline)
                if not _is_refused(second):
                    await self._partners.adopt(other)
                    return other, second
                await self._partners.adopt(partner)
        elif isinstance(outcome, Failed) and _is_puzzling(outcome.error):
            self._partners.doubt(partner)
        return partner, outcome

    async def _send_once(self, talk: Talk, partner: Partner, deadline: Instant) -> Outcome:
        request = talk.encode(partner)
        if not isinstance(request, AgentRequest):
            return request
        return await talk.exchange(partner, request, self._left(deadline))

    async def _poll(self, talk: Talk, partner: Partner, claim: ClaimedTask, remote_task_id: str) -> Finished:
        deadline = claim.deadline or self._clock.now()
        request = partner.adapter.encode_poll(claim.task, remote_task_id)
        if request is None:
            return self._finish(claim, talk, partner, _unfinished("working"), deadline)
        seconds = min(max(self._left(deadline), 1.0), _POLL_SECONDS)
        outcome = await talk.exchange(partner, request, seconds)
        if isinstance(outcome, Failed):
            outcome = _after_failed_poll(outcome, remote_task_id)
        return self._finish(claim, talk, partner, outcome, deadline)

    def _finish(
        self, claim: ClaimedTask, talk: Talk, partner: Partner, outcome: Outcome, deadline: Instant
    ) -> Finished:
        if isinstance(outcome, Working):
            if self._left(deadline) > 0:
                return self._working(claim, talk, partner, outcome, deadline)
            outcome = _unfinished(outcome.state)
        result = _result(claim, outcome, self._clock.now(), partner)
        self._metrics.attempts.labels(result.status if result.error is None else result.error.code).inc()
        return _finished(claim, talk.exchanges, result)

    def _working(
        self, claim: ClaimedTask, talk: Talk, partner: Partner, outcome: Working, deadline: Instant
    ) -> Finished:
        wait = min(_FIRST_POLL * _POLL_GROWTH**claim.polls, _LONGEST_POLL)
        result = AgentResult(
            **_ids(claim),
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
                poll_at=min(after(self._clock.now(), wait), deadline),
                remote_task_id=outcome.remote_task_id,
                deadline=deadline,
                polls=claim.polls + 1,
            ),
            # Once is enough: the next answers say the same.
            result=result if claim.polls == 0 else None,
            exchanges=talk.exchanges,
        )

    async def tell_cancelled(self, claim: ClaimedTask, *, ended: bool) -> Finished:
        talk = Talk(self._transport, self._clock, self._metrics, claim)
        agent = await self._agent(claim.task.agent)
        partner = None if agent is None else await self._partners.of(agent)
        if isinstance(partner, Partner) and claim.remote_task_id is not None:
            request = partner.adapter.encode_cancel(claim.task, claim.remote_task_id)
            if isinstance(request, AgentRequest):
                await talk.ask_to_stop(partner, request, _CANCEL_SECONDS)
        if not ended:
            return Finished(claim=claim, answer=None, result=None, exchanges=talk.exchanges)
        return _finished(claim, talk.exchanges, self._stop_result(claim))

    def stopped(self, claim: ClaimedTask) -> Finished:
        return _finished(claim, [], self._stop_result(claim))

    def failed(self, claim: ClaimedTask, error: StepError, retry: RetryPolicy | None = None) -> Finished:
        self._metrics.attempts.labels(error.code).inc()
        task_log(claim.task).error(names.CALL_FAILED, code=error.code, error=error.message)
        result = AgentResult(**_ids(claim), status="error", at=self._clock.now(), error=error, retry=retry)
        return _finished(claim, [], result)

    def _stop_result(self, claim: ClaimedTask) -> AgentResult:
        return AgentResult(**_ids(claim), status="cancelled", at=self._clock.now())

    def _left(self, deadline: Instant) -> float:
        return seconds_between(self._clock.now(), deadline)


class _Ids(TypedDict):
    task_id: str
    run_id: str
    step: str
    attempt: int


def _ids(claim: ClaimedTask) -> _Ids:
    task = claim.task
    return {"task_id": task.task_id, "run_id": task.run_id, "step": task.step, "attempt": task.attempt}


def _error(code: str, message: str) -> StepError:
    return StepError(code=code, message=message, fix=fix_for(code))


def _is_refused(outcome: Outcome) -> bool:
    return isinstance(outcome, Failed) and outcome.other_dialect


def _is_puzzling(error: StepError) -> bool:
    """No proof that the agent speaks another dialect by now, but what one would look like."""
    return error.code == "agent_answer_malformed" or (
        error.code == "agent_http_error" and error.http_status == 500
    )


def _unfinished(state: str) -> Failed:
    return Failed(error=_error("agent_task_unfinished", f"Task state: {state}"))


def _after_failed_poll(outcome: Failed, remote_task_id: str) -> Outcome:
    """A question that got no answer, or a 5xx, is asked again; an agent that cannot be asked is not."""
    error = outcome.error
    overloaded = error.code == "agent_http_error" and (error.http_status or 0) >= 500
    if overloaded or not ERROR_CODES[error.code].answered:
        return Working(remote_task_id=remote_task_id, state="working")
    if error.jsonrpc_code == -32601:
        return _unfinished("working")
    return outcome


def _finished(claim: ClaimedTask, exchanges: list[ExchangeRecord], result: AgentResult) -> Finished:
    answer = TaskAnswer(
        key=claim.key, epoch=claim.epoch, remote_task_id=result.remote_task_id, polls=claim.polls
    )
    return Finished(claim=claim, answer=answer, result=result, exchanges=exchanges)


def _result(
    claim: ClaimedTask, outcome: Succeeded | Failed | Interrupted, at: Instant, partner: Partner
) -> AgentResult:
    protocol = partner.protocol
    match outcome:
        case Succeeded():
            return AgentResult(
                **_ids(claim),
                status="success",
                at=at,
                output=msgspec.Raw(outcome.output),
                protocol=protocol,
                context_id=outcome.context_id,
                remote_task_id=outcome.remote_task_id,
                warnings=list(outcome.warnings),
            )
        case Failed():
            return AgentResult(
                **_ids(claim),
                status="error",
                at=at,
                error=outcome.error,
                protocol=protocol,
                context_id=outcome.context_id,
                warnings=list(outcome.warnings),
                retry=partner.agent.retry,
            )
        case Interrupted():
            return AgentResult(
                **_ids(claim),
                status="interrupted",
                at=at,
                question=outcome.question,
                protocol=protocol,
                context_id=outcome.context_id,
                remote_task_id=outcome.remote_task_id,
            )
        case _:
            assert_never(outcome)
