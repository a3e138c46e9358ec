"""The entrance of the commit loop for events: stored, and brought to the steps that wait for them as run inputs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import msgspec

from trunkline.clock import Instant, after
from trunkline.errors import Unavailable
from trunkline.machine.inputs import EventArrived, ReceivedEvent, encode_input
from trunkline.services.commit_loop import CommitLoop
from trunkline.services.runs.intake import TIMEOUT
from trunkline.stores.base import InputsQueued, QueuedInput, Transaction
from trunkline.stores.port.automation.received_events import EventMatch, NewEvent

# Bounds the time for which one transaction holds the writer, and what it holds in memory.
MAX_EVENTS_PER_TURN = 500
MAX_MATCHES_PER_TURN = 500
# Events that another process has left over are found by this poll.
_LOOK_EVERY = timedelta(seconds=1)
_NOW = Instant(0)


class EventIntake:
    """
    A part of the commit loop, before the driver. What it accepts is durable when the call returns.

    What the store does not accept in time is refused as `Unavailable`, and not tried again: its sender does, with the
    same id.
    """

    def __init__(
        self,
        loop: CommitLoop,
        on_pending_firing: Callable[[], object] | None = None,
        timeout: timedelta = TIMEOUT,
    ) -> None:
        """`on_pending_firing`: called when the transaction has stored an event that a trigger listens to."""
        self._loop = loop
        self._on_pending_firing = on_pending_firing or _take_all
        self._timeout = timeout.total_seconds()
        self._waiting: list[tuple[Sequence[NewEvent], asyncio.Future[None]]] = []
        # How many of them the present turn carries.
        self._carried = 0
        self._look_at = _NOW
        self._more = False
        self._check: Callable[[], object] = _take_all

    def refuse_all(self, raises: Callable[[], object]) -> None:
        """From now on nothing is accepted: each call does `raises`."""
        self._check = raises

    async def put(self, events: Sequence[NewEvent]) -> None:
        """All of them, or none."""
        self._check()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((events, future))
        self._loop.wake()
        timer = asyncio.get_running_loop().call_later(self._timeout, self._time_out, future)
        try:
            await future
        finally:
            timer.cancel()

    def _time_out(self, future: asyncio.Future[None]) -> None:
        if not future.done():
            future.set_exception(
                Unavailable(
                    self._loop.failure or "The store did not respond in time.",
                    fix="Try again with the same id, so that the event counts once.",
                )
            )

    async def work(self, tx: Transaction) -> None:
        self._waiting = [waiting for waiting in self._waiting if not waiting[1].done()]
        events: list[NewEvent] = []
        self._carried = 0
        for given, _ in self._waiting:
            if events and len(events) + len(given) > MAX_EVENTS_PER_TURN:
                break
            events += given
            self._carried += 1
        self._more = self._carried < len(self._waiting)
        matches = await self.store(tx, events) if events else 0
        if matches < MAX_MATCHES_PER_TURN and self._look_at <= tx.now:
            found = await tx.received_events.find_more(MAX_MATCHES_PER_TURN - matches)
            await _queue(tx, found)
            self._look_at = _NOW if found else after(tx.now, _LOOK_EVERY)
            self._more = self._more or bool(found)

    async def store(self, tx: Transaction, events: Sequence[NewEvent]) -> int:
        """Stores them in the transaction of another part of the loop; how many steps they go to at once."""
        matches = await tx.received_events.put(events, MAX_MATCHES_PER_TURN)
        if await tx.triggers.has_pending():
            self._on_pending_firing()
            await tx.notify(InputsQueued())
        if len(matches) == MAX_MATCHES_PER_TURN:
            self._more, self._look_at = True, _NOW
        await _queue(tx, matches)
        return len(matches)

    def committed(self) -> None:
        for _, future in self._waiting[: self._carried]:
            if not future.done():
                future.set_result(None)
        del self._waiting[: self._carried]
        self._carried = 0

    def rolled_back(self) -> None:
        self._carried = 0
        self._look_at = _NOW

    def next_wake(self) -> Instant | None:
        return _NOW if self._more else None


async def _queue(tx: Transaction, matches: Sequence[EventMatch]) -> None:
    if matches:
        await tx.input_queue.put([queued_match(match) for match in matches])
        await tx.notify(InputsQueued())


def _take_all() -> None:
    """Nothing is refused."""


def queued_match(match: EventMatch) -> QueuedInput:
    """The same match a second time has the same key, and is dropped."""
    (run_id, step, attempt), event = match
    received = ReceivedEvent(
        event.id,
        event.type,
        event.at,
        # A signal belongs to its run, so its key is not shown to triggers and workflows.
        None if event.run_id is not None else event.key,
        msgspec.Raw(event.data),
        event.source,
    )
    arrived = EventArrived(step, attempt, received)
    return QueuedInput(run_id, f"event/{event.number}/{step}/{attempt}", encode_input(arrived))
