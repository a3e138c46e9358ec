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
from trunkline.bridge.agents.resolver import ResolvedAgent
from trunkline.bridge.agents.routes import AgentRoutes, Route
from trunkline.bridge.calls.client import AgentClient
from trunkline.bridge.calls.results import CallUpdate, poll_delay, unfinished
from trunkline.bridge.calls.session import AgentSession
from trunkline.clock import Clock, Instant, after
from trunkline.id_generation import new_id
from trunkline.jsontypes import Json
from trunkline.messages import AgentTask, StepError
from trunkline.protocols import Failed, Interrupted, Outcome, Succeeded, Working
from trunkline.services.agents.inspection import AgentTestResult
from trunkline.stores.base import ClaimedTask, ExchangeRecord, TaskKey
from trunkline.telemetry.redaction import Redaction


class DetachedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of such a call."""

    outcome: Succeeded | Failed | Interrupted
    # What was spoken, if anything was.
    protocol: str | None = None
    # Hides what nobody may see of the agent's words.
    redaction: Redaction = Redaction()
    exchanges: Sequence[ExchangeRecord] = ()


class DetachedCaller:
    def __init__(self, client: AgentClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def shadow_call(self, claim: ClaimedTask, route: Route) -> DetachedResult:
        """
        The task of `claim`, which has been done, given to another side of its agent.

        The conversation of the one side is not the other's.
        """
        task = msgspec.structs.replace(claim.task, context_id=None, doubtful=False)
        claim = self._claim(claim.key, task, route)
        return await self._told(self._client.session(claim, route, beside="shadow"), claim, route)

    async def test_call(self, task: AgentTask, route: Route) -> DetachedResult:
        """A task that belongs to no run."""
        claim = self._claim(TaskKey(task.task_id, task.attempt), task, route)
        return await self._told(self._client.session(claim, route, beside="trial"), claim, route)

    def _claim(self, key: TaskKey, task: AgentTask, route: Route) -> ClaimedTask:
        milliseconds = task.timeout_ms or route.agent.timeout_ms
        deadline = after(self._clock.now(), timedelta(milliseconds=milliseconds))
        return ClaimedTask(key=key, task=task, epoch=1, deadline=deadline)

    async def _told(self, session: AgentSession, claim: ClaimedTask, route: Route) -> DetachedResult:
        try:
            return await self._call(session, claim, route)
        except Exception as exc:
            told = session.without_secrets(exc)
            if told is exc:
                raise
            # Whoever logs it does not know what must not be shown.
            raise told from None

    async def _call(self, session: AgentSession, claim: ClaimedTask, route: Route) -> DetachedResult:
        task, client = claim.task, self._client
        unknown = await client.open_secrets(session, task) if task.secrets or task.told_secrets else None
        if unknown is not None:
            return DetachedResult(outcome=Failed(error=unknown))
        resolved = await route.resolver.resolve(route.agent, session.record_auxiliary)
        if isinstance(resolved, StepError):
            return DetachedResult(outcome=Failed(error=resolved), exchanges=session.exchanges)
        resolved, sent = await client.send(session, session.with_secrets_hidden(resolved), claim, _not_heard)
        outcome = await self._ended(session, resolved, claim, sent)
        if (
            session.detached == "trial"
            and isinstance(outcome, Interrupted)
            and outcome.remote_task_id is not None
        ):
            # Nobody will answer its question.
            await client.cancel_once(session, resolved, claim, outcome.remote_task_id)
        return DetachedResult(
            outcome=outcome,
            protocol=resolved.protocol,
            redaction=resolved.redaction,
            exchanges=session.exchanges,
        )

    async def _ended(
        self, session: AgentSession, resolved: ResolvedAgent, claim: ClaimedTask, outcome: Outcome
    ) -> Succeeded | Failed | Interrupted:
        polls = 0
        while isinstance(outcome, Working):
            pause = poll_delay(polls).total_seconds()
            if self._client.seconds_left(claim) <= pause:
                await self._client.cancel_once(session, resolved, claim, outcome.remote_task_id)
                return unfinished(outcome.state)
            await asyncio.sleep(pause)
            outcome = await self._client.poll(session, resolved, claim, outcome.remote_task_id)
            polls += 1
        return outcome


def _not_heard(news: CallUpdate) -> None:
    """Of a call that is nobody's."""
    del news


# What people look at; the wire has the beginning of a longer one.
_MOST_OUTPUT_BYTES = 1024 * 1024
_STEP = "try"


class AgentTestCaller:
    def __init__(self, invoker: DetachedCaller, routes: AgentRoutes, clock: Clock) -> None:
        self._invoker = invoker
        self._agent_routes = routes
        self._clock = clock

    async def __call__(
        self, agent: Agent, message: Json, *, longest: timedelta, correlation_id: str
    ) -> AgentTestResult:
        number = new_id()
        task = AgentTask(
            task_id=f"{number}/{_STEP}/0",
            run_id=number,
            step=_STEP,
            agent=agent.name,
            input_data=message,
            correlation_id=correlation_id,
            timeout_ms=max(1, longest // timedelta(milliseconds=1)),
        )
        started_at, started = self._clock.now(), perf_counter()
        result = await self._invoker.test_call(task, self._agent_routes.source(agent))
        return _trial(result, started_at, round((perf_counter() - started) * 1000, 3))


def _trial(result: DetachedResult, started_at: Instant, duration_ms: float) -> AgentTestResult:
    exchanges = [exchange.record for exchange in result.exchanges]
    match result.outcome:
        case Succeeded(output=output, warnings=warnings):
            too_long = len(output) > _MOST_OUTPUT_BYTES
            if too_long:
                warnings = (
                    *warnings,
                    f"The output has {len(output):,} bytes and is not shown: more than {_MOST_OUTPUT_BYTES:,}.",
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
