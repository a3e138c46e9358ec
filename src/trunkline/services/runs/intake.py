"""The entrance of the commit loop for requests: new runs, and inputs for the input queues of runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple, TypeVar

from trunkline.clock import Instant
from trunkline.errors import Unavailable
from trunkline.ids import number_of
from trunkline.machine.inputs import RunRequested
from trunkline.services.callbacks.task_updates import put_first_configs
from trunkline.services.commit_loop import CommitLoop
from trunkline.stores.base import ExistingRun, FollowUp, InputsQueued, NewRun, QueuedInput, Transaction
from trunkline.stores.port.automation.triggers import Firing
from trunkline.stores.port.operations import NewAuditEntry
from trunkline.stores.port.push_configs import PushConfig

START = "start"
# A database that fails over is back sooner, and then no caller notifications.
TIMEOUT = timedelta(seconds=20)

AnyAnswer = TypeVar("AnyAnswer")


class _NewStart(NamedTuple):
    run: NewRun
    request: RunRequested
    answer: asyncio.Future[ExistingRun | None]
    audit: NewAuditEntry | None
    firing: Firing | None
    push_config: PushConfig | None


class _QueuedItem(NamedTuple):
    """An input on its way into a run's input queue, with what is written next to it."""

    item: QueuedInput
    accepted: asyncio.Future[None]
    audit: NewAuditEntry | None
    follow_up: FollowUp | None


class Intake:
    """
    A part of the commit loop. What it accepts is durable when the call returns.

    What the store does not accept in time is refused as `Unavailable`, and not tried again.
    """

    def __init__(
        self,
        loop: CommitLoop,
        on_queued: Callable[[], object] | None = None,
        timeout: timedelta = TIMEOUT,
    ) -> None:
        """`on_queued`: called when the transaction has a run that flow control has to let start."""
        self._loop = loop
        self._on_queued = on_queued or _take_all
        self._timeout_seconds = timeout.total_seconds()
        self._runs: list[_NewStart] = []
        self._items: list[_QueuedItem] = []
        # How many of each the present turn carries; more may come while it waits for the store.
        self._carried = (0, 0)
        self._answers: list[ExistingRun | None] = []
        self._check: Callable[[], object] = _take_all

    def refuse_all(self, raises: Callable[[], object]) -> None:
        """From now on nothing is accepted: each call does `raises`."""
        self._check = raises

    async def start(
        self,
        run: NewRun,
        request: RunRequested,
        audit: NewAuditEntry | None = None,
        firing: Firing | None = None,
        push_config: PushConfig | None = None,
    ) -> ExistingRun | None:
        """
        None: the run is new. Otherwise the run that its idempotency key has made before.

        `audit`, `firing` and `push_config`: written in the same transaction, if the run is new.
        """
        self._check()
        future: asyncio.Future[ExistingRun | None] = asyncio.get_running_loop().create_future()
        self._runs.append(_NewStart(run, request, future, audit, firing, push_config))
        return await self._accepted(future)

    async def put(
        self, item: QueuedInput, audit: NewAuditEntry | None = None, follow_up: FollowUp | None = None
    ) -> None:
        """`audit`, `follow_up`: written in the same transaction."""
        self._check()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._items.append(_QueuedItem(item, future, audit, follow_up))
        await self._accepted(future)

    async def _accepted(self, future: asyncio.Future[AnyAnswer]) -> AnyAnswer:
        self._loop.wake()
        # By hand, at a third of what a timeout of asyncio costs each run.
        timer = asyncio.get_running_loop().call_later(self._timeout_seconds, self._time_out, future)
        try:
            return await future
        finally:
            timer.cancel()

    def _time_out(self, future: asyncio.Future[AnyAnswer]) -> None:
        if not future.done():
            future.set_exception(
                Unavailable(
                    self._loop.failure or "The store did not respond in time.",
                    fix="Try again. Use an Idempotency-Key to make sure that the run is started only once.",
                )
            )

    async def work(self, tx: Transaction) -> None:
        # The caller has timed out, or has been cancelled.
        self._runs = [waiting for waiting in self._runs if not waiting.answer.done()]
        self._items = [waiting for waiting in self._items if not waiting.accepted.done()]
        runs = self._runs.copy()
        items = [waiting.item for waiting in self._items]
        audit = [waiting.audit for waiting in self._items if waiting.audit is not None]
        follow_ups = [waiting.follow_up for waiting in self._items if waiting.follow_up is not None]
        self._carried = (len(runs), len(items))
        if runs:
            self._answers = await tx.runs.insert([start.run for start in runs])
            # A repeated request has changed nothing.
            new = [start for start, existing in zip(runs, self._answers, strict=True) if existing is None]
            audit += [start.audit for start in new if start.audit is not None]
            items += [
                QueuedInput(start.run.id, START, start.request, is_once=True)
                for start in new
                if start.run.start is None
            ]
            queued = [(start.run.id, start.run.start) for start in new if start.run.start is not None]
            if queued:
                await tx.start_queue.put(queued)
                await tx.notify(InputsQueued())
                self._on_queued()
            firings = [start.firing for start in new if start.firing is not None]
            if firings:
                await tx.triggers.put_firings(firings)
            configs = [start.push_config for start in new if start.push_config is not None]
            if configs:
                await put_first_configs(tx, configs)
        if items:
            await tx.input_queue.put(items)
            await tx.notify(InputsQueued(wakes=number_of(items[0].run_id)))
        if follow_ups:
            await tx.published_tasks.add_follow_ups(follow_ups)
        if audit:
            await tx.audit.put(audit)

    def committed(self) -> None:
        runs, items = self._carried
        for start, existing in zip(self._runs[:runs], self._answers, strict=False):
            if not start.answer.done():
                start.answer.set_result(existing)
        for waiting in self._items[:items]:
            if not waiting.accepted.done():
                waiting.accepted.set_result(None)
        del self._runs[:runs], self._items[:items]
        self._carried = (0, 0)

    def rolled_back(self) -> None:
        self._carried = (0, 0)

    def next_wake(self) -> Instant | None:
        return None


def _take_all() -> None:
    """Nothing is refused."""
