"""
Calls that no run waits for: shadow calls to the target of a migration, and test calls.

Each runs until its end or its timeout while its caller waits. Nothing is written to the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from time import perf_counter

import msgspec

from trunkline.agents import Agent
from trunkline.bridge.agents.routes import AgentRouter, Route
from trunkline.bridge.calls.agent_client import Detached
from trunkline.bridge.calls.context import CallContext
from trunkline.bridge.calls.recording import ExchangeRecorder
from trunkline.bridge.calls.results import CallUpdate, poll_delay, unfinished
from trunkline.bridge.calls.session import AgentSession
from trunkline.clock import Clock, Instant, after
from trunkline.id_generation import new_id
from trunkline.jsontypes import Json
from trunkline.messages import AgentTask, StepError, complete_fix
from trunkline.protocols import Failed, Interrupted, Outcome, Succeeded, Working
from trunkline.services.agents.inspection import AgentTestResult
from trunkline.stores.base import ClaimedTask, ExchangeRecord, TaskKey
from trunkline.telemetry.redaction import Redaction

# What people look at; the wire record has the beginning of a longer one.
_MAX_OUTPUT_BYTES = 1024 * 1024
_TEST_STEP = "try"


class DetachedResult(msgspec.Struct, frozen=True, kw_only=True):
    outcome: Succeeded | Failed | Interrupted
    # The dialect that was used, if anything was sent.
    protocol: str | None = None
    # Hides the secrets in what the agent said.
    redaction: Redaction = Redaction()
    exchanges: Sequence[ExchangeRecord] = ()


class DetachedCaller:
    def __init__(self, context: CallContext) -> None:
        self._context = context

    async def shadow_call(self, claim: ClaimedTask, route: Route) -> DetachedResult:
        """
        The task of `claim`, which is done, sent to the target of its agent's migration.

        The conversation of the source is not the target's.
        """
        task = msgspec.structs.replace(claim.task, context_id=None, doubtful=False)
        return await DetachedCall(self._context, claim.key, task, route, "shadow").run()

    async def test_call(self, task: AgentTask, route: Route) -> DetachedResult:
        """A task that belongs to no run."""
        key = TaskKey(task.task_id, task.attempt)
        return await DetachedCall(self._context, key, task, route, "trial").run()


class DetachedCall:
    def __init__(
        self, context: CallContext, key: TaskKey, task: AgentTask, route: Route, kind: Detached
    ) -> None:
        self._context = context
        timeout = timedelta(milliseconds=task.timeout_ms or route.agent.timeout_ms)
        # Not of the store: no other bridge can have it.
        self._claim = ClaimedTask(key=key, task=task, epoch=1, deadline=after(context.clock.now(), timeout))
        self._route = route
        self._kind: Detached = kind
        self._recorder = ExchangeRecorder(task, context.limits.max_wire_bytes, route.notes)

    async def run(self) -> DetachedResult:
        try:
            return await self._call()
        except Exception as exc:
            redacted = self._recorder.without_secrets(exc)
            if redacted is exc:
                raise
            # The code that logs it does not know what must not be shown.
            raise redacted from None

    async def _call(self) -> DetachedResult:
        context, claim, recorder = self._context, self._claim, self._recorder
        has_secrets = claim.task.secrets or claim.task.told_secrets
        unknown = await context.open_secrets(claim.task, recorder) if has_secrets else None
        if unknown is not None:
            return DetachedResult(outcome=Failed(error=unknown))
        agent = await self._route.resolver.resolve(self._route.agent, recorder.add_auxiliary)
        if isinstance(agent, StepError):
            return DetachedResult(outcome=Failed(error=agent), exchanges=recorder.exchanges)
        session = AgentSession(context, claim, agent, recorder, _ignore, detached=self._kind)
        outcome = await self._wait_for_end(session, await session.send())
        if self._kind == "trial" and isinstance(outcome, Interrupted) and outcome.remote_task_id is not None:
            # Its question will not be answered.
            await session.cancel_once(outcome.remote_task_id)
        return DetachedResult(
            outcome=outcome,
            protocol=session.agent.protocol,
            redaction=session.agent.redaction,
            exchanges=recorder.exchanges,
        )

    async def _wait_for_end(
        self, session: AgentSession, outcome: Outcome
    ) -> Succeeded | Failed | Interrupted:
        polls = 0
        while isinstance(outcome, Working):
            pause = poll_delay(polls).total_seconds()
            if session.seconds_left() <= pause:
                await session.cancel_once(outcome.remote_task_id)
                return unfinished(outcome.state)
            await asyncio.sleep(pause)
            outcome = await session.poll(outcome.remote_task_id)
            polls += 1
        return outcome


def _ignore(update: CallUpdate) -> None:
    """No run has a history for it."""
    del update


class AgentTestCaller:
    def __init__(self, caller: DetachedCaller, routes: AgentRouter, clock: Clock) -> None:
        self._caller = caller
        self._agent_routes = routes
        self._clock = clock

    async def __call__(
        self, agent: Agent, message: Json, *, longest: timedelta, correlation_id: str
    ) -> AgentTestResult:
        number = new_id()
        task = AgentTask(
            task_id=f"{number}/{_TEST_STEP}/0",
            run_id=number,
            step=_TEST_STEP,
            agent=agent.name,
            input_data=message,
            correlation_id=correlation_id,
            timeout_ms=max(1, longest // timedelta(milliseconds=1)),
        )
        started_at, started = self._clock.now(), perf_counter()
        result = await self._caller.test_call(task, self._agent_routes.source(agent))
        return _test_result(agent.name, result, started_at, round((perf_counter() - started) * 1000, 3))


def _test_result(
    agent: str, result: DetachedResult, started_at: Instant, duration_ms: float
) -> AgentTestResult:
    exchanges = [exchange.record for exchange in result.exchanges]
    match result.outcome:
        case Succeeded(output=output, warnings=warnings):
            too_long = len(output) > _MAX_OUTPUT_BYTES
            if too_long:
                warnings = (
                    *warnings,
                    f"The output has {len(output):,} bytes and is not shown: more than {_MAX_OUTPUT_BYTES:,}.",
                )
            return AgentTestResult(
                outcome="success",
                started_at=started_at,
                duration_ms=duration_ms,
                output=None if too_long else output,
                warnings=warnings,
                protocol=result.protocol,
                exchanges=exchanges,
            )
        case Failed(error=error, warnings=warnings):
            complete_fix(error, agent=agent)
            return AgentTestResult(
                outcome="error",
                started_at=started_at,
                duration_ms=duration_ms,
                error=error,
                warnings=warnings,
                protocol=result.protocol,
                exchanges=exchanges,
            )
        case Interrupted(question=question):
            return AgentTestResult(
                outcome="interrupted",
                started_at=started_at,
                duration_ms=duration_ms,
                question=question,
                protocol=result.protocol,
                exchanges=exchanges,
            )
