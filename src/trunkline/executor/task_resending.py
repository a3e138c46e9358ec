"""Publishes tasks again whose results are overdue: the message, or its result, may be lost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

import msgspec
import structlog

from trunkline.clock import Instant, after
from trunkline.messages import AgentTask
from trunkline.stores.base import Transaction
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

_MAX_PER_TURN = 256
_LOOK_EVERY = timedelta(seconds=1)
# A call may take hours; its task is then sent again a few times an hour, and the bridge that has it ignores it.
MAX_PAUSE = timedelta(minutes=15)
_NOW = Instant(0)

_tasks: msgspec.json.Decoder[AgentTask] = msgspec.json.Decoder(AgentTask)


class ResendingBroker(Protocol):
    """What this needs of a broker that can lose messages."""

    async def resend_tasks(self, tx: Transaction, tasks: Sequence[AgentTask]) -> None: ...


class TaskResender:
    """A part of the commit loop."""

    def __init__(self, broker: ResendingBroker) -> None:
        self._broker = broker
        self._look_at = _NOW
        self._sent = 0

    async def work(self, tx: Transaction) -> None:
        if tx.now < self._look_at:
            return
        due = await tx.dispatches.take_due(_MAX_PER_TURN, MAX_PAUSE)
        self._sent = len(due)
        if due:
            await self._broker.resend_tasks(tx, [_tasks.decode(dispatch.payload) for dispatch in due])
        if len(due) < _MAX_PER_TURN:
            self._look_at = after(tx.now, _LOOK_EVERY)

    def committed(self) -> None:
        if self._sent:
            log.info(log_events.TASKS_RESENT, tasks=self._sent)
            self._sent = 0

    def rolled_back(self) -> None:
        self._sent = 0
        self._look_at = _NOW

    def next_wake(self) -> Instant | None:
        return self._look_at
