"""
Orphan messages: messages for runs that do not exist.

A run is deleted when the retention time after its end has passed: a message that still arrives for it is late, and is
dropped. A younger run was never ours, so its message becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple, Protocol

from trunkline.clock import after
from trunkline.ids import RunId, made_at
from trunkline.stores.base import Transaction
from trunkline.telemetry.metrics import Metrics


class RunMessage(Protocol):
    @property
    def run_id(self) -> str: ...


class Orphan(NamedTuple):
    # Its run can have existed.
    is_late: bool
    reason: str


class OrphanMessages:
    def __init__(self, keep: timedelta, metrics: Metrics) -> None:
        # How long finished runs are kept; 0: without limit.
        self._keep = keep
        self._late = metrics.late_messages

    async def find(self, tx: Transaction, messages: Sequence[RunMessage]) -> list[Orphan | None]:
        """For each message: whether its run does not exist."""
        unknown = await tx.runs.unknown({RunId(message.run_id) for message in messages})
        return [self._orphan(message, tx) if message.run_id in unknown else None for message in messages]

    def _orphan(self, message: RunMessage, tx: Transaction) -> Orphan:
        made = made_at(RunId(message.run_id))
        is_late = bool(self._keep) and made is not None and made < after(tx.now, -self._keep)
        reason = (
            f"There is no run {message.run_id[:100]}. The message may be for another system. If so, delete "
            "it here."
        )
        return Orphan(is_late, reason)

    def count_late(self, number: int) -> None:
        self._late.inc(number)
