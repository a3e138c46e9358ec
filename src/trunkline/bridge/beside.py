"""
Calls that no run waits for: the same task for another side of its agent, and a message to try an agent out.

Each goes on to its end or its timeout, while whoever wants it waits. Nothing of it is written anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import msgspec

from trunkline.bridge.calls import Finished
from trunkline.bridge.endings import unfinished
from trunkline.bridge.messenger import Messenger
from trunkline.bridge.partners import Partner
from trunkline.bridge.polling import pause_after
from trunkline.bridge.sides import Way
from trunkline.bridge.talk import Talk
from trunkline.clock import Clock, after
from trunkline.messages import AgentTask, StepError
from trunkline.protocols import Failed, Interrupted, Outcome, Succeeded, Working
from trunkline.stores.base import ClaimedTask, ExchangeRecord, TaskKey
from trunkline.telemetry.redaction import Redaction


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What became of such a call."""

    outcome: Succeeded | Failed | Interrupted
    # What was spoken, if anything was.
    protocol: str | None = None
    # Hides what nobody may see of the agent's words.
    redaction: Redaction = Redaction()
    exchanges: Sequence[ExchangeRecord] = ()


class BesideInvoker:
    def __init__(self, messenger: Messenger, clock: Clock) -> None:
        self._messenger = messenger
        self._clock = clock

    async def call_beside(self, claim: ClaimedTask, way: Way) -> Beside:
        """
        The task of `claim`, which has been done, given to another side of its agent.

        The conversation of the one side is not the other's.
        """
        task = msgspec.structs.replace(claim.task, context_id=None, doubtful=False)
        claim = self._claim(claim.key, task, way)
        return await self._told(self._messenger.talk(claim, way, beside="shadow"), claim, way)

    async def try_out(self, task: AgentTask, way: Way) -> Beside:
        """A task that belongs to no run."""
        claim = self._claim(TaskKey(task.task_id, task.attempt), task, way)
        return await self._told(self._messenger.talk(claim, way, beside="trial"), claim, way)

    def _claim(self, key: TaskKey, task: AgentTask, way: Way) -> ClaimedTask:
        milliseconds = task.timeout_ms or way.agent.timeout_ms
        deadline = after(self._clock.now(), timedelta(milliseconds=milliseconds))
        return ClaimedTask(key=key, task=task, epoch=1, deadline=deadline)

    async def _told(self, talk: Talk, claim: ClaimedTask, way: Way) -> Beside:
        try:
            return await self._call(talk, claim, way)
        except Exception as exc:
            told = talk.without_secrets(exc)
            if told is exc:
                raise
            # Whoever logs it does not know what must not be shown.
            raise told from None

    async def _call(self, talk: Talk, claim: ClaimedTask, way: Way) -> Beside:
        task, messenger = claim.task, self._messenger
        unknown = await messenger.open_secrets(talk, task) if task.secrets or task.told_secrets else None
        if unknown is not None:
            return Beside(outcome=Failed(error=unknown))
        partner = await way.partners.of(way.agent, talk.note)
        if isinstance(partner, StepError):
            return Beside(outcome=Failed(error=partner), exchanges=talk.exchanges)
        partner, sent = await messenger.send(talk, talk.hiding(partner), claim, _not_heard)
        outcome = await self._ended(talk, partner, claim, sent)
        if talk.beside == "trial" and isinstance(outcome, Interrupted) and outcome.remote_task_id is not None:
            # Nobody will answer its question.
            await messenger.give_up(talk, partner, claim, outcome.remote_task_id)
        return Beside(
            outcome=outcome,
            protocol=partner.protocol,
            redaction=partner.redaction,
            exchanges=talk.exchanges,
        )

    async def _ended(
        self, talk: Talk, partner: Partner, claim: ClaimedTask, outcome: Outcome
    ) -> Succeeded | Failed | Interrupted:
        polls = 0
        while isinstance(outcome, Working):
            pause = pause_after(polls).total_seconds()
            if self._messenger.seconds_left(claim) <= pause:
                await self._messenger.give_up(talk, partner, claim, outcome.remote_task_id)
                return unfinished(outcome.state)
            await asyncio.sleep(pause)
            outcome = await self._messenger.ask(talk, partner, claim, outcome.remote_task_id)
            polls += 1
        return outcome


def _not_heard(news: Finished) -> None:
    """Of a call that is nobody's."""
    del news
