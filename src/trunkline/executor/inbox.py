"""Takes results from the broker into the inboxes of their runs."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.ids import RunId
from trunkline.machine.inputs import ResultArrived, encode_input
from trunkline.messages import AgentResult
from trunkline.stores.base import InboxItem, Transaction


async def take_results(tx: Transaction, results: Sequence[AgentResult]) -> None:
    """A result that came before finds its row and stops there."""
    await tx.put_inbox(
        [
            InboxItem(RunId(result.run_id), _key(result), encode_input(ResultArrived(result)))
            for result in results
        ]
    )


def _key(result: AgentResult) -> str:
    # By status: an answer that was given up for lost may come after all, and it must not look like a repetition.
    return f"{result.status}/{result.task_id.partition('/')[2]}/{result.attempt}"
