"""
Orphan messages: messages for runs that do not exist.

A run is deleted when the retention time after its end has passed: a message that still arrives for it is late, and is
dropped. A younger run was never ours, so its message becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from trunkline.clock import after
from trunkline.ids import RunId, made_at
from trunkline.stores.base import Transaction
from trunkline.telemetry.metrics import Metrics


class RunMessage(Protocol):
    @property
    def run_id(self) -> str: ...


class OrphanMessages:
    def __init__(self, keep: timedelta, metrics: Metrics) -> None:
        # How long finished runs are kept; 0: without limit.
        self._keep = keep
        self._late = metrics.late_messages

    async def find(self, tx: Transaction, messages: Sequence[RunMessage]) -> dict[RunId, bool]:
        """The runs that do not exist; True for those that can have existed."""
        unknown = await tx.runs.unknown({RunId(message.run_id) for message in messages})
        return {run_id: self._can_be_deleted(run_id, tx) for run_id in unknown}

    def _can_be_deleted(self, run_id: RunId, tx: Transaction) -> bool:
        made = made_at(run_id)
        return bool(self._keep) and made is not None and made < after(tx.now, -self._keep)

    def count_late(self, number: int) -> None:
        self._late.inc(number)
