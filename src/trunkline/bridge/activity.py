"""
What the ends of calls add to the picture of their agents: when each began, how it ended, and sums for every minute.

Noted in the transaction that writes the answers, once for an agent, a minute and a batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trunkline.bridge.calls.results import CallProgress, CallResult
from trunkline.clock import Instant
from trunkline.stores.base import TaskAnswer, Transaction
from trunkline.stores.port.agents.activity import AgentMinute, minute_of

_FAILURES = frozenset({"error", "unknown"})


def with_call_times(update: CallProgress | CallResult) -> TaskAnswer:
    """The answer with when the call began, and how it has ended if it has."""
    answer, result = update.answer, update.result
    if answer.new_status != "done" or result is None:
        return msgspec.structs.replace(answer, called_at=update.claim.called_at)
    return msgspec.structs.replace(
        answer,
        called_at=update.claim.called_at,
        ended_at=result.at,
        outcome=result.status,
        error_code=None if result.error is None else result.error.code,
    )


class ActivityRecorder:
    def __init__(self, bridge: str) -> None:
        self._bridge = bridge

    async def note(self, tx: Transaction, results: Sequence[CallResult]) -> None:
        minutes = minutes_of(results)
        if minutes:
            await tx.activity.record(self._bridge, minutes)

    def committed(self) -> None:
        """Nothing is kept here."""

    def rolled_back(self) -> None:
        """As above."""


def minutes_of(results: Sequence[CallResult]) -> list[AgentMinute]:
    """One for each agent and minute; what was broken off tells nothing of an agent."""
    sums: dict[tuple[str, int], list[int]] = {}
    for item in results:
        result = item.result
        if item.answer.new_status != "done" or result is None:
            continue
        if result.status == "cancelled":
            continue
        counted = sums.setdefault((item.claim.task.agent, minute_of(result.at)), [0, 0, 0, 0])
        milliseconds = _milliseconds(item.claim.called_at, result.at)
        counted[0] += 1
        counted[1] += result.status in _FAILURES
        counted[2] += milliseconds
        counted[3] = max(counted[3], milliseconds)
    return [
        AgentMinute(
            agent=agent, minute=minute, calls=calls, failures=failures, total_ms=total, longest_ms=longest
        )
        for (agent, minute), (calls, failures, total, longest) in sums.items()
    ]


def _milliseconds(begin: Instant | None, end: Instant) -> int:
    # Another bridge, with another clock, may have begun it.
    return 0 if begin is None else max(0, round((end - begin) / 1_000))
