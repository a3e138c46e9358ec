"""
What fills the input queues of runs besides requests: results from the broker, and timers that are due.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from trunkline.clock import Instant, after
from trunkline.ids import RunId
from trunkline.machine.inputs import ResultArrived
from trunkline.messages import AgentResult
from trunkline.stores.base import QueuedInput, TaskKey, Timer, Transaction

# After these the call may continue, or its answer may still come.
_NOT_THE_END = frozenset({"working", "progress", "unknown"})
_MAX_TIMERS_PER_TURN = 512
# Timers of other processes are found by this poll; of its own this process knows.
_LOOK_EVERY = timedelta(seconds=1)
_NOW = Instant(0)


async def queue_results(tx: Transaction, results: Sequence[AgentResult], *, final_once: bool = False) -> None:
    """
    Puts results into the input queues of their runs; a result that was queued before is dropped by its key.

    `final_once`: a result that ends a call comes in the transaction that ends its task, so it comes once.
    """
    await tx.input_queue.put(
        [
            QueuedInput(
                RunId(result.run_id),
                _key(result),
                ResultArrived(result),
                is_once=final_once and result.status not in _NOT_THE_END,
            )
            for result in results
        ]
    )


async def queue_delivered_results(tx: Transaction, results: Sequence[AgentResult]) -> None:
    """Queues results that a broker has delivered, and marks their tasks as not to be sent again."""
    await queue_results(tx, results)
    ended = {
        TaskKey(result.task_id, result.attempt) for result in results if result.status not in _NOT_THE_END
    }
    if ended:
        await tx.dispatches.settle(ended)


def _key(result: AgentResult) -> str:
    # By status: an answer that was given up for lost may come after all, and it must not look like a repetition.
    number = f"/{result.number}" if result.number else ""
    return f"{result.status}/{result.task_id.partition('/')[2]}/{result.attempt}{number}"


class Timers:
    """A part of the commit loop, before the driver: what is due is applied in the same turn."""

    def __init__(self) -> None:
        self._next: Instant | None = None
        self._look_at = _NOW

    async def work(self, tx: Transaction) -> None:
        if self._look_at <= tx.now:
            await tx.timers.fire_due(_MAX_TIMERS_PER_TURN)
            self._next = await tx.timers.next_due()
            self._look_at = after(tx.now, _LOOK_EVERY)
            if self._next is not None:
                self._look_at = min(self._look_at, self._next)

    def expect(self, timers: Iterable[Timer]) -> None:
        """The driver has written these after `work` has read the next due time."""
        for timer in timers:
            if self._next is None or timer.due < self._next:
                self._next = timer.due
                self._look_at = min(self._look_at, timer.due)

    def committed(self) -> None:
        pass

    def rolled_back(self) -> None:
        # Look again: what was taken is back.
        self._next = None
        self._look_at = _NOW

    def next_wake(self) -> Instant | None:
        return self._next
