"""
The call of one claimed task, from the claim to its result.

    AgentCaller   makes the calls of a process, and cancels what agents still work on
    AgentCall     one call: finds the agent and its route, opens the session, and is made again while this machine
                  lacks what it takes
    OpenCall      the call from then on: owns the claim and the session, which owns the resolved agent, the limits and
                  the progress reports. Sends the message or polls the remote task, and turns the outcome into a result

A task that an agent works on is polled by a timer, ever more rarely, or after a push notification. What is sent to
the agent is in session.py. Every end of a call is a `CallResult`; nothing is raised but a cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import msgspec

from trunkline.agents import Agent
from trunkline.bridge.agents.resolver import ResolvedAgent
from trunkline.bridge.agents.routes import AgentRouter, Route
from trunkline.bridge.calls.attachments import Attachments, AttachmentsNotSent, lists_parts
from trunkline.bridge.calls.context import CallContext, retry_while_unavailable
from trunkline.bridge.calls.output_check import OutputChecks
from trunkline.bridge.calls.recording import ExchangeRecorder
from trunkline.bridge.calls.results import (
    CallExchanges,
    CallResult,
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
from trunkline.clock import after, seconds_between
from trunkline.messages import AgentResult, AgentTask, Progress, StepError
from trunkline.protocols import AgentRequest, Failed, Outcome, Succeeded, Working
from trunkline.retry_policy import RetryPolicy
from trunkline.services.agents.cache import AgentCache
from trunkline.stores.base import ClaimedTask, ExchangeRecord, TaskAnswer
from trunkline.telemetry import log_events
from trunkline.transports.base import OUT_OF_RESOURCES

# Until a call is tried again for which this machine had no file descriptor, memory or port.
_RESOURCE_PAUSE_SECONDS = 0.5


class _OutOfResources(Exception):
    """The request was never sent, for a reason of our own."""


class AgentCaller:
    def __init__(
        self,
        context: CallContext,
        routes: AgentRouter,
        agent_cache: AgentCache,
        attachments: Attachments,
        output_checks: OutputChecks,
    ) -> None:
        self.context = context
        self.attachments = attachments
        self.output_checks = output_checks
        self._routes = routes
        self._agent_cache = agent_cache

    def call(self, claim: ClaimedTask, report: Callable[[CallUpdate], None]) -> Awaitable[CallResult]:
        return AgentCall(self, claim, report).run()

    def stop_listening(self) -> None:
        self.context.stop_listening()

    async def cancel(self, claim: ClaimedTask, *, ended: bool) -> CallResult | CallExchanges:
        exchanges: list[ExchangeRecord] = []
        agent = await self.agent(claim.task.agent)
        if agent is not None:
            exchanges = await self._cancel(claim, await self.route(agent, claim.task))
        if not ended:
            return CallExchanges(claim=claim, exchanges=exchanges)
        return ended_with(claim, exchanges, self._cancelled_result(claim))

    async def _cancel(self, claim: ClaimedTask, route: Route) -> list[ExchangeRecord]:
        context, task = self.context, claim.task
        recorder = ExchangeRecorder(task, context.limits.max_wire_bytes, route.notes)
        agent = await route.resolver.resolve(route.agent)
        if isinstance(agent, ResolvedAgent) and claim.remote_task_id is not None:
            request = agent.adapter.encode_cancel(task, claim.remote_task_id)
            # What the agent answers might repeat a secret that we could not hide.
            if isinstance(request, AgentRequest) and await context.open_secrets(task, recorder) is None:
                await AgentSession(context, claim, agent, recorder, _ignore).cancel(request)
        return recorder.exchanges

    def cancelled(self, claim: ClaimedTask) -> CallResult:
        return ended_with(claim, [], self._cancelled_result(claim))

    def _cancelled_result(self, claim: ClaimedTask) -> AgentResult:
        return AgentResult(**ids_of(claim), status="cancelled", at=self.context.clock.now())

    def failed(
        self,
        claim: ClaimedTask,
        error: StepError,
        retry: RetryPolicy | None = None,
        exchanges: Sequence[ExchangeRecord] = (),
    ) -> CallResult:
        context = self.context
        context.metrics.attempts.labels(error.code).inc()
        task_log(claim.task).error(log_events.CALL_FAILED, code=error.code, error=error.message)
        result = AgentResult(
            **ids_of(claim), status="error", at=context.clock.now(), error=error, retry=retry
        )
        return ended_with(claim, list(exchanges), result)

    def known_agent(self, name: str) -> Agent | None:
        """As it was read lately."""
        return self._agent_cache.known(name)

    async def agent(self, name: str) -> Agent | None:
        return self.known_agent(name) or await retry_while_unavailable(lambda: self._agent_cache.get(name))

    def source(self, agent: Agent) -> Route:
        return self._routes.source(agent)

    async def route(self, agent: Agent, task: AgentTask) -> Route:
        # 0: the run was accepted before any agent migrated.
        if not task.routes:
            return self._routes.source(agent)
        return await retry_while_unavailable(lambda: self._routes.route_of(agent, task))


class AgentCall:
    def __init__(self, caller: AgentCaller, claim: ClaimedTask, report: Callable[[CallUpdate], None]) -> None:
        """`report` takes what is to be written while the call goes on."""
        self._caller = caller
        self._context = caller.context
        self._clock = caller.context.clock
        self._claim = claim
        self._report = report

    async def run(self) -> CallResult:
        caller, claim = self._caller, self._claim
        if claim.called_at is None:
            claim = self._claim = msgspec.structs.replace(claim, called_at=self._clock.now())
        name = claim.task.agent
        agent = caller.known_agent(name) or await caller.agent(name)
        if agent is None:
            message = f"No agent is registered under the name {name}."
            return caller.failed(claim, step_error("agent_unknown", message))
        try:
            if lists_parts(claim.task):
                await self._load_files()
        except AttachmentsNotSent as exc:
            return caller.failed(claim, exc.error, retry=agent.retry)
        # 0: the run was accepted before any agent migrated.
        route = await caller.route(agent, claim.task) if claim.task.routes else caller.source(agent)
        while True:
            # Waits while this machine lacks what a call needs: the agent has no part in it, so nothing has failed.
            try:
                result = await self._call_recorded(route)
                break
            except _OutOfResources as exc:
                task_log(self._claim.task).warning(log_events.OUT_OF_RESOURCES, error=str(exc))
            await asyncio.sleep(_RESOURCE_PAUSE_SECONDS)
        if route.migration is not None:
            result.route = route
        return result

    async def _call_recorded(self, route: Route) -> CallResult:
        recorder = ExchangeRecorder(self._claim.task, self._context.limits.max_wire_bytes, route.notes)
        try:
            return await self._call(route, recorder)
        except asyncio.CancelledError:
            # What was sent until then belongs into the wire record all the same.
            if recorder.exchanges:
                self._report(CallExchanges(claim=self._claim, exchanges=recorder.exchanges))
            raise
        except _OutOfResources:
            raise
        except Exception as exc:
            redacted = recorder.without_secrets(exc)
            if redacted is exc:
                raise
            # The code that logs it does not know what must not be shown.
            raise redacted from None

    async def _load_files(self) -> None:
        task = self._claim.task
        loaded = await retry_while_unavailable(lambda: self._caller.attachments.load_files(task))
        if loaded is not task:
            self._claim = msgspec.structs.replace(self._claim, task=loaded)

    async def _call(self, route: Route, recorder: ExchangeRecorder) -> CallResult:
        caller, claim, retry = self._caller, self._claim, route.agent.retry
        task, remote_task_id = claim.task, claim.remote_task_id
        has_secrets = task.secrets or task.told_secrets
        unknown = await self._context.open_secrets(task, recorder) if has_secrets else None
        if unknown is not None and not self._is_pollable():
            return caller.failed(claim, mark_doubtful(unknown, claim), retry=retry)
        agent = await route.resolver.resolve(route.agent, recorder.add_auxiliary)
        if isinstance(agent, StepError):
            _check_resources(agent)
            return caller.failed(claim, agent, retry=retry, exchanges=recorder.exchanges)
        if remote_task_id is None:
            timeout = timedelta(milliseconds=task.timeout_ms or route.agent.timeout_ms)
            self._claim = msgspec.structs.replace(claim, deadline=after(self._clock.now(), timeout))
        session = AgentSession(self._context, self._claim, agent, recorder, self._report)
        call = OpenCall(caller, self._claim, session)
        if remote_task_id is None:
            return await call.send()
        # Whatever the agent says might repeat what we could not hide: it is polled when the secret is there again.
        return await (call.poll(remote_task_id) if unknown is None else call.poll_later(remote_task_id))

    def _is_pollable(self) -> bool:
        claim = self._claim
        return (
            claim.remote_task_id is not None
            and claim.deadline is not None
            and seconds_between(self._clock.now(), claim.deadline) > 0
        )


class OpenCall:
    def __init__(self, caller: AgentCaller, claim: ClaimedTask, session: AgentSession) -> None:
        self._caller = caller
        self._context = caller.context
        self._claim = claim
        self._session = session

    async def send(self) -> CallResult:
        doubt = resend_doubt(self._claim)
        settled = None if doubt is None else await self._check_before_resend(doubt)
        return await self._finish(await self._session.send() if settled is None else settled)

    async def poll(self, remote_task_id: str) -> CallResult:
        return await self._finish(await self._poll(remote_task_id))

    async def poll_later(self, remote_task_id: str) -> CallResult:
        return await self._finish(Working(remote_task_id=remote_task_id, state="working"))

    async def _poll(self, remote_task_id: str) -> Outcome:
        session = self._session
        outcome = await session.poll(remote_task_id)
        if isinstance(outcome, Working) and outcome.text:
            session.progress().report_once(outcome.text)
        # Never polled before: the call that read its stream is gone.
        if isinstance(outcome, Working) and self._claim.polls == 0 and session.agent.streams:
            return await session.resume_stream(outcome)
        return outcome

    async def _check_before_resend(self, doubt: str) -> Outcome | None:
        """
        What is to be done about a message that the agent may have got before; None: it is sent again.

        The reason goes into the run's history.
        """
        session = self._session
        policy = session.agent.agent.options.resend
        if policy == "never":
            return Failed(error=step_error("outcome_unknown", f"{doubt} The agent must not be called twice."))
        why = "the agent accepts the same message twice"
        if policy == "ask_first":
            found, why = await session.find()
            if isinstance(found, Failed):
                return found
            if found is not None:
                return await session.poll(found)
        with session.progress() as progress:
            text = f"{doubt} Sent again with the same message: {why}."
            progress.add(Progress(kind="called_again", text=text))
        return None

    async def _finish(self, outcome: Outcome) -> CallResult:
        claim, session, attachments = self._claim, self._session, self._caller.attachments
        if isinstance(outcome, Working):
            if session.seconds_left() > 0:
                return self._still_working(outcome)
            outcome = unfinished(outcome.state)
        if isinstance(outcome, Failed):
            _check_resources(outcome.error)
        if isinstance(outcome, Succeeded) and attachments.may_change(outcome):
            answered = outcome
            outcome = await retry_while_unavailable(
                lambda: attachments.store_files(claim.task.run_id, answered)
            )
        errors: list[str] = []
        if isinstance(outcome, Succeeded) and claim.task.schema_of is not None:
            outcome, errors = await self._check_output(outcome)
        result = result_of(claim, outcome, self._context.clock.now(), session.agent)
        result.output_errors = errors
        status = result.status if result.error is None else result.error.code
        self._context.metrics.attempts.labels(status).inc()
        return ended_with(claim, session.exchanges, result)

    async def _check_output(self, outcome: Succeeded) -> tuple[Succeeded, list[str]]:
        """With the data that was found in it, and what is wrong with the data."""
        is_data = (self._session.agent.agent.protocol_config or {}).get("output_mode") == "data"
        checked = await retry_while_unavailable(
            lambda: self._caller.output_checks.check(self._claim.task, outcome.output, is_data=is_data)
        )
        warnings = (*outcome.warnings, *checked.warnings)
        return msgspec.structs.replace(outcome, output=checked.output, warnings=warnings), checked.errors

    def _still_working(self, outcome: Working) -> CallResult:
        claim, session, now = self._claim, self._session, self._context.clock.now()
        result = AgentResult(
            **ids_of(claim),
            status="working",
            at=now,
            protocol=session.agent.protocol,
            context_id=outcome.context_id,
            remote_task_id=outcome.remote_task_id,
        )
        poll_at = after(now, session.poll_delay())
        return CallResult(
            claim=claim,
            answer=TaskAnswer(
                key=claim.key,
                epoch=claim.epoch,
                poll_at=poll_at if claim.deadline is None else min(poll_at, claim.deadline),
                remote_task_id=outcome.remote_task_id,
                context_id=outcome.context_id,
                deadline=claim.deadline,
                # One that is left at a stop stays as it is: the next process resumes its stream.
                polls=claim.polls if self._context.is_stopping else claim.polls + 1,
            ),
            # Once is enough: the next answers say the same.
            result=result if claim.polls == 0 else None,
            exchanges=session.exchanges,
        )


def _check_resources(error: StepError) -> None:
    if error.code == OUT_OF_RESOURCES:
        raise _OutOfResources(error.message)


def _ignore(update: CallUpdate) -> None:
    """A cancellation reports no progress."""
    del update
