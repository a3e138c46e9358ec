"""
Calls that no run waits for: the same task for another side of its agent, and a message to try an agent out.

Each goes on to its end or its timeout, while whoever wants it waits. Nothing of it is written anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import msgspec

from trunkline.bridge.calls import CallUpdate
from trunkline.bridge.endings import unfinished
from trunkline.bridge.messenger import AgentClient
from trunkline.bridge.partners import ResolvedAgent
from trunkline.bridge.polling import poll_delay
from trunkline.bridge.sides import Route
from trunkline.bridge.talk import AgentSession
from trunkline.clock import Clock, after
from trunkline.messages import AgentTask, StepError
from trunkline.protocols import Failed, Interrupted, Outcome, Succeeded, Working
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
