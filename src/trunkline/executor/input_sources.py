"""Takes results from the broker into the inboxes of their runs."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.ids import RunId
from trunkline.machine.inputs import ResultArrived, encode_input
from trunkline.messages import AgentResult
from trunkline.stores.base import InboxItem, TaskKey, Transaction

# After these the call may still go on, or its answer may still come.
_NOT_THE_END = frozenset({"working", "progress", "unknown"})


async def queue_results(tx: Transaction, results: Sequence[AgentResult]) -> None:
    """A result that came before finds its row and stops there."""
    await tx.put_inbox(
        [
            InboxItem(RunId(result.run_id), _key(result), encode_input(ResultArrived(result)))
            for result in results
        ]
    )


async def queue_delivered_results(tx: Transaction, results: Sequence[AgentResult]) -> None:
    """The same for results that could have been lost: their tasks need not be sent again."""
    await queue_results(tx, results)
    ended = {
        TaskKey(result.task_id, result.attempt) for result in results if result.status not in _NOT_THE_END
    }
    if ended:
        await tx.settle_dispatches(ended)


def _key(result: AgentResult) -> str:
    # By status: an answer that was given up for lost may come after all, and it must not look like a repetition.
    number = f"/{result.number}" if result.number else ""
    return f"{result.status}/{result.task_id.partition('/')[2]}/{result.attempt}{number}"
