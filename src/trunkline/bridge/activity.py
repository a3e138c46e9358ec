"""
What the ends of calls add to the picture of their agents: when each began, how it ended, and sums for every minute.

Noted in the transaction that writes the answers, once for an agent, a minute and a batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trunkline.bridge.calls.results import CallProgress, CallResult
from trunkline.clock import Instant
from trunkline.machine.candidates import HEALTH_MINUTES, is_unhealthy
from trunkline.services.subscriptions.reporter import Change, ChangeReporter
from trunkline.stores.base import Store, TaskAnswer, Transaction
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
    def __init__(self, bridge: str, store: Store, reporter: ChangeReporter | None = None) -> None:
        """`reporter`: for the subscriptions to unhealthy agents."""
        self._bridge = bridge
        self._store = store
        self._reporter = reporter

    async def note(self, tx: Transaction, results: Sequence[CallResult]) -> None:
        minutes = minutes_of(results)
        if not minutes:
            return
        await self._report_unhealthy(tx, minutes)
        await tx.activity.record(self._bridge, minutes)

    async def _report_unhealthy(self, tx: Transaction, minutes: Sequence[AgentMinute]) -> None:
        """Those that have become so by these calls."""
        suspects = [each for each in minutes if each.calls == each.failures]
        if not suspects or self._reporter is None:
            return
        if "agent.unhealthy" not in await self._reporter.wanted_types(tx):
            return
        since = minute_of(tx.now) - HEALTH_MINUTES + 1
        # Committed by all bridges. Two that write at the same time can both report it.
        before = await self._store.activity.minutes(since, {each.agent for each in suspects})
        changes: list[Change] = []
        for agent in sorted({each.agent for each in suspects}):
            earlier = [each for each in before if each.agent == agent]
            calls, failures = _sums(earlier)
            now_calls, now_failures = _sums([*earlier, *(each for each in minutes if each.agent == agent)])
            if is_unhealthy(now_calls, now_failures) and not is_unhealthy(calls, failures):
                reason = f"All {now_calls} calls of the last {HEALTH_MINUTES} minutes failed."
                changes.append(Change("agent.unhealthy", agent, {"agent": agent, "reason": reason}))
        await self._reporter.report(tx, changes)

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


def _sums(minutes: Sequence[AgentMinute]) -> tuple[int, int]:
    return sum(each.calls for each in minutes), sum(each.failures for each in minutes)


def _milliseconds(begin: Instant | None, end: Instant) -> int:
    # Another bridge, with another clock, may have begun it.
    return 0 if begin is None else max(0, round((end - begin) / 1_000))
