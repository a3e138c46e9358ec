"""
Calls agents for runs: the first message, the same message again, what becomes of a long task, and its end.

A task that an agent works on is asked by a timer, ever more rarely, or when the agent rings (push). What is said to the
agent is in messenger.py. Every end of a call is a `CallUpdate`; nothing is raised but a cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import msgspec

from trunkline.agents import Agent
from trunkline.bridge.agents.resolver import ResolvedAgent
from trunkline.bridge.agents.routes import AgentRoutes, Route
from trunkline.bridge.calls.attachments import AttachmentMissing, Attachments, lists_parts
from trunkline.bridge.calls.client import AgentClient, retry_while_unavailable
from trunkline.bridge.calls.progress import ProgressReporter
from trunkline.bridge.calls.results import (
    CallUpdate,
    ended_with,
    ids_of,
    mark_doubtful,
    resend_doubt,
    result_of,
    step_error,
    task_log,
    unfinished,
)
from trunkline.bridge.calls.session import AgentSession
from trunkline.clock import Clock, Instant, after, seconds_between
from trunkline.messages import AgentResult, AgentTask, Progress, StepError
from trunkline.policies import RetryPolicy
from trunkline.protocols import AgentRequest, Failed, Outcome, Succeeded, Working
from trunkline.services.agents.cache import AgentCache
from trunkline.stores.base import ClaimedTask, ExchangeRecord, TaskAnswer
from trunkline.telemetry import names
from trunkline.telemetry.metrics import Metrics


class AgentCaller:
    def __init__(
        self,
        client: AgentClient,
        sides: AgentRoutes,
        directory: AgentCache,
        clock: Clock,
        metrics: Metrics,
        attachments: Attachments,
    ) -> None:
        self._client = client
        self._sides = sides
        self._directory = directory
        self._clock = clock
        self._metrics = metrics
        self._attachments = attachments

    def stop_listening(self) -> None:
        self._client.stop_listening()

    async def call(self, claim: ClaimedTask, report: Callable[[CallUpdate], None]) -> CallUpdate:
        if claim.called_at is None:
            claim = msgspec.structs.replace(claim, called_at=self._clock.now())
        agent = await self._agent(claim.task.agent)
        if agent is None:
            message = f"No agent is registered under the name {claim.task.agent}."
            return self.failed(claim, step_error("agent_unknown", message))
        try:
            claim = await self._with_files(claim)
        except AttachmentMissing as exc:
            return self.failed(claim, exc.error, retry=agent.retry)
        route = await self._route(agent, claim.task)
        session = self._client.session(claim, route)
        try:
            finished = await self._call(session, route, claim, report)
        except asyncio.CancelledError:
            # What was said until then belongs on the wire all the same.
            if session.exchanges:
                report(CallUpdate(claim=claim, answer=None, result=None, exchanges=session.exchanges))
            raise
        except Exception as exc:
            told = session.without_secrets(exc)
            if told is exc:
                raise
            # Whoever logs it does not know what must not be shown.
            raise told from None
        if route.migration is not None:
            finished.route = route
        return finished

    async def _call(
        self, session: AgentSession, route: Route, claim: ClaimedTask, report: Callable[[CallUpdate], None]
    ) -> CallUpdate:
        task, agent, client = claim.task, route.agent, self._client
        unknown = await client.open_secrets(session, task) if task.secrets or task.told_secrets else None
        if unknown is not None and not self._is_pollable(claim):
            return self.failed(claim, mark_doubtful(unknown, claim), retry=agent.retry)
        resolved = await route.resolver.resolve(agent, session.record_auxiliary)
        if isinstance(resolved, StepError):
            return self.failed(claim, resolved, retry=agent.retry, exchanges=session.exchanges)
        if unknown is not None and claim.remote_task_id is not None:
            # Whatever the agent says might repeat what we could not hide: it is asked when the secret is there again.
            later = Working(remote_task_id=claim.remote_task_id, state="working")
            return await self._finish(claim, session, resolved, later, claim.deadline or self._clock.now())
        resolved = session.with_secrets_hidden(resolved)
        if claim.remote_task_id is not None:
            outcome = await client.poll(session, resolved, claim, claim.remote_task_id)
            if isinstance(outcome, Working) and outcome.text:
                ProgressReporter(
                    claim, self._clock, resolved.protocol, resolved.redaction, report
                ).report_once(outcome.text)
            # Never asked before: whoever listened to its stream is gone.
            if isinstance(outcome, Working) and claim.polls == 0 and resolved.streams:
                outcome = await client.resume_stream(session, resolved, claim, outcome, report)
            return await self._finish(claim, session, resolved, outcome, claim.deadline or self._clock.now())
        milliseconds = claim.task.timeout_ms or agent.timeout_ms
        deadline = after(self._clock.now(), timedelta(milliseconds=milliseconds))
        claim = msgspec.structs.replace(claim, deadline=deadline)
        doubt = resend_doubt(claim)
        if doubt is not None:
            settled = await self._check_before_resend(session, resolved, claim, doubt, report)
            if settled is not None:
                return await self._finish(claim, session, resolved, settled, deadline)
        resolved, outcome = await client.send(session, resolved, claim, report)
        return await self._finish(claim, session, resolved, outcome, deadline)

    async def _with_files(self, claim: ClaimedTask) -> ClaimedTask:
        if not lists_parts(claim.task):
            return claim
        brought = await retry_while_unavailable(lambda: self._attachments.load_files(claim.task))
        return claim if brought is claim.task else msgspec.structs.replace(claim, task=brought)

    def _is_pollable(self, claim: ClaimedTask) -> bool:
        return claim.remote_task_id is not None and self._client.seconds_left(claim) > 0

    async def _route(self, agent: Agent, task: AgentTask) -> Route:
        # 0: the run was accepted before any agent moved.
        if not task.routes:
            return self._sides.source(agent)
        return await retry_while_unavailable(lambda: self._sides.route_of(agent, task))

    async def _agent(self, name: str) -> Agent | None:
        return self._directory.known(name) or await retry_while_unavailable(lambda: self._directory.get(name))

    # --- the same message again

    async def _check_before_resend(
        self,
        session: AgentSession,
        resolved: ResolvedAgent,
        claim: ClaimedTask,
        doubt: str,
        report: Callable[[CallUpdate], None],
    ) -> Outcome | None:
        """
        What is to be done about a message that the agent may have got before; None: it is sent again.

        The reason is news for the run's history.
        """
        policy = resolved.agent.options.resend
        if policy == "never":
            return Failed(
                error=step_error("outcome_unknown", f"{doubt} The agent is not to be called twice.")
            )
        why = "the agent takes the same message twice"
        if policy == "ask_first":
            found, why = await self._client.find(session, resolved, claim)
            if isinstance(found, Failed):
                return found
            if found is not None:
                return await self._client.poll(session, resolved, claim, found)
        news = ProgressReporter(claim, self._clock, resolved.protocol, resolved.redaction, report)
        news.add(Progress(kind="called_again", text=f"{doubt} Called again with the same message: {why}."))
        news.close()
        return None

    # --- how it stands now

    async def _finish(
        self,
        claim: ClaimedTask,
        session: AgentSession,
        resolved: ResolvedAgent,
        outcome: Outcome,
        deadline: Instant,
    ) -> CallUpdate:
        if isinstance(outcome, Working):
            if seconds_between(self._clock.now(), deadline) > 0:
                return self._working(claim, session, resolved, outcome, deadline)
            outcome = unfinished(outcome.state)
        if isinstance(outcome, Succeeded) and self._attachments.may_store_files(outcome):
            answered = outcome
            outcome = await retry_while_unavailable(
                lambda: self._attachments.store_files(claim.task.run_id, answered)
            )
        result = result_of(claim, outcome, self._clock.now(), resolved)
        self._metrics.attempts.labels(result.status if result.error is None else result.error.code).inc()
        return ended_with(claim, session.exchanges, result)

    def _working(
        self,
        claim: ClaimedTask,
        session: AgentSession,
        resolved: ResolvedAgent,
        outcome: Working,
        deadline: Instant,
    ) -> CallUpdate:
        result = AgentResult(
            **ids_of(claim),
            status="working",
            at=self._clock.now(),
            protocol=resolved.protocol,
            context_id=outcome.context_id,
            remote_task_id=outcome.remote_task_id,
        )
        return CallUpdate(
            claim=claim,
            answer=TaskAnswer(
                key=claim.key,
                epoch=claim.epoch,
                poll_at=min(after(self._clock.now(), self._client.poll_delay(resolved, claim)), deadline),
                remote_task_id=outcome.remote_task_id,
                context_id=outcome.context_id,
                deadline=deadline,
                # One that is let go at a stop is left as it is: the next process takes its stream up.
                polls=claim.polls if self._client.is_stopping else claim.polls + 1,
            ),
            # Once is enough: the next answers say the same.
            result=result if claim.polls == 0 else None,
            exchanges=session.exchanges,
        )

    # --- the end

    async def cancel(self, claim: ClaimedTask, *, ended: bool) -> CallUpdate:
        client = self._client
        agent = await self._agent(claim.task.agent)
        route = None if agent is None else await self._route(agent, claim.task)
        session = client.session(claim, route)
        resolved = None if route is None else await route.resolver.resolve(route.agent)
        if isinstance(resolved, ResolvedAgent) and claim.remote_task_id is not None:
            request = resolved.adapter.encode_cancel(claim.task, claim.remote_task_id)
            # What the agent says to it might repeat a secret that we could not hide.
            if isinstance(request, AgentRequest) and await client.open_secrets(session, claim.task) is None:
                await client.cancel(session, session.with_secrets_hidden(resolved), claim, request)
        if not ended:
            return CallUpdate(claim=claim, answer=None, result=None, exchanges=session.exchanges)
        return ended_with(claim, session.exchanges, self._cancelled_result(claim))

    def cancelled(self, claim: ClaimedTask) -> CallUpdate:
        return ended_with(claim, [], self._cancelled_result(claim))

    def failed(
        self,
        claim: ClaimedTask,
        error: StepError,
        retry: RetryPolicy | None = None,
        exchanges: Sequence[ExchangeRecord] = (),
    ) -> CallUpdate:
        self._metrics.attempts.labels(error.code).inc()
        task_log(claim.task).error(names.CALL_FAILED, code=error.code, error=error.message)
        result = AgentResult(**ids_of(claim), status="error", at=self._clock.now(), error=error, retry=retry)
        return ended_with(claim, list(exchanges), result)

    def _cancelled_result(self, claim: ClaimedTask) -> AgentResult:
        return AgentResult(**ids_of(claim), status="cancelled", at=self._clock.now())
