"""
Shadow calls: the same task goes to the target of a migration when the source's answer is written, for comparison.

The run has its answer already and does not see this one. A shadow call takes no slot, counts in no circuit breaker, is
not repeated, and is dropped when too many are running. Only agents that are declared `repeatable` get one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec
import structlog

from trunkline.agents.migration import TargetEndpoint
from trunkline.agents.migration.comparison import (
    AnswerComparison,
    ComparisonVerdict,
    differences,
    only_in_source,
)
from trunkline.agents.migration.routing import MigrationRevision, is_shadowed
from trunkline.bridge.agents.routes import AgentRouter, Route
from trunkline.bridge.breaker import NOT_CAUSED_BY_AGENT
from trunkline.bridge.calls.detached import DetachedResult
from trunkline.bridge.calls.results import CallResult, task_log
from trunkline.clock import Clock
from trunkline.errors import Unavailable
from trunkline.id_generation import new_id
from trunkline.ids import RunId
from trunkline.jsontypes import decode, encode
from trunkline.messages import ERROR_CODES, AgentResult
from trunkline.protocols import Failed, Interrupted, Succeeded
from trunkline.stores.base import ClaimedTask, Store, Transaction
from trunkline.stores.port.agents.agent_events import ComparisonRecord
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics

log = structlog.stdlib.get_logger()

# In addition to the calls of runs, which come first.
_MAX_CONCURRENT = 8
# Of those that wait; more would be compared long after.
_MAX_WAITING = 64
# Of an agent: enough to judge by, and to look at.
MAX_COMPARISONS = 1_000
# Tries, and seconds between them, until comparisons that the store does not take are given up.
_TRIES = 5
_RETRY_PAUSE = 0.5
# A larger output, in bytes, is compared in a thread, not in the event loop.
_LONG_OUTPUT = 64 * 1024


class _ShadowTask(msgspec.Struct, frozen=True):
    """A task that is to be compared."""

    claim: ClaimedTask
    route: Route
    migration: MigrationRevision
    target: TargetEndpoint
    result: AgentResult


class ShadowCaller(Protocol):
    async def shadow_call(self, claim: ClaimedTask, route: Route) -> DetachedResult: ...


class ShadowCalls:
    def __init__(
        self, invoker: ShadowCaller, routes: AgentRouter, store: Store, clock: Clock, metrics: Metrics
    ) -> None:
        self._invoker = invoker
        self._agent_routes = routes
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._noted: list[_ShadowTask] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT)
        self._compared: list[tuple[ComparisonRecord, str]] = []
        self._writer: asyncio.Task[None] | None = None
        self._is_closed = False

    async def note(self, tx: Transaction, results: Sequence[CallResult]) -> None:
        del tx
        self._noted = [
            answered
            for item in results
            if item.route is not None and (answered := _shadow_task(item)) is not None
        ]

    def committed(self) -> None:
        noted, self._noted = self._noted, []
        for item in noted:
            self._start(item)

    def rolled_back(self) -> None:
        self._noted = []

    @property
    def is_busy(self) -> bool:
        """Whether any shadow call is running or waiting."""
        return bool(self._under_way)

    def _start(self, item: _ShadowTask) -> None:
        if self._is_closed or len(self._under_way) >= _MAX_CONCURRENT + _MAX_WAITING:
            self._drop(item.claim.task.agent, "busy")
            return
        task = asyncio.create_task(self._run_logged(item))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _run_logged(self, item: _ShadowTask) -> None:
        try:
            async with self._slots:
                await self._call_and_compare(item)
        except Exception:  # noqa: BLE001 - it is logged, and no run waits for it
            task_log(item.claim.task).exception(log_events.SHADOW_CRASHED)
            self._drop(item.claim.task.agent, "crashed")

    async def _call_and_compare(self, item: _ShadowTask) -> None:
        task, agent = item.claim.task, item.route.agent
        route = self._agent_routes.target(agent, item.target, item.migration)
        new = await self._invoker.shadow_call(item.claim, route)
        if isinstance(new.outcome, Failed) and new.outcome.error.code in NOT_CAUSED_BY_AGENT:
            self._drop(task.agent, "not_sent")
            return
        long = isinstance(new.outcome, Succeeded) and len(new.outcome.output) > _LONG_OUTPUT
        comparison = await asyncio.to_thread(compare, item.result, new) if long else compare(item.result, new)
        record = ComparisonRecord(
            id=new_id(),
            agent_id=agent.id,
            since=item.migration.state.shadow_since,
            run_id=RunId(task.run_id),
            step=task.step,
            at=self._clock.now(),
            verdict=comparison.verdict,
            record=encode(comparison),
        )
        self._compared.append((record, task.agent))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())

    async def _write(self) -> None:
        """What has gathered, and what gathers meanwhile."""
        while self._compared:
            compared, self._compared = self._compared, []
            if await self._is_written([record for record, _ in compared]):
                for record, agent in compared:
                    self._metrics.comparisons.labels(agent, record.verdict).inc()
            else:
                log.warning(log_events.COMPARISONS_LOST, comparisons=len(compared))
                for _, agent in compared:
                    self._drop(agent, "not_written")

    async def _is_written(self, records: Sequence[ComparisonRecord]) -> bool:
        for _ in range(_TRIES):
            try:
                # Worth no wait for the disk: a power cut may take the last ones.
                async with self._store.transaction(durable=False) as tx:
                    await tx.comparisons.put(records, MAX_COMPARISONS)
            except Unavailable:
                await asyncio.sleep(_RETRY_PAUSE)
            else:
                return True
        return False

    def _drop(self, agent: str, reason: str) -> None:
        self._metrics.shadows_dropped.labels(agent, reason).inc()

    async def close(self) -> None:
        """Cancels the running shadow calls; what has been compared is written."""
        self._is_closed = True
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        if self._writer is not None:
            await self._writer


def _shadow_task(item: CallResult) -> _ShadowTask | None:
    route, answer, result, task = item.route, item.answer, item.result, item.claim.task
    if route is None or route.migration is None or result is None or answer.new_status != "done":
        return None
    state = route.migration.state
    is_meant = (
        is_shadowed(state, task.run_id, route.agent.id)
        and route.agent.options.repeatable
        # The target does not know the source's remote tasks; and a step may be stricter than its agent.
        and task.remote_task_id is None
        and not task.at_most_once
        and _is_answered(result)
    )
    if state.target is None or not is_meant:
        return None
    return _ShadowTask(item.claim, route, route.migration, state.target, result)


def _is_answered(result: AgentResult) -> bool:
    if result.status == "success":
        return True
    return result.status == "error" and result.error is not None and ERROR_CODES[result.error.code].answered


def compare(old: AgentResult, new: DetachedResult) -> AnswerComparison:
    hide = new.redaction.text
    old_error = None if old.error is None else hide(old.error.message)
    found, more, lost = (), 0, ()
    match new.outcome:
        case Succeeded(output=output):
            new_error = None
            if old_error is None:
                before, after = decode(old.output), decode(output)
                found, more = differences(before, after, hide)
                lost = only_in_source(before, after)
        case Failed(error=error):
            new_error = hide(error.message)
        case Interrupted(question=question):
            new_error = hide(f"The agent asked a question: {question.text}")
    return AnswerComparison(
        verdict=_verdict(old_error, new_error, differs=bool(found)),
        old_protocol=old.protocol,
        new_protocol=new.protocol,
        differences=found,
        more=more,
        only_in_old=lost,
        old_error=old_error,
        new_error=new_error,
    )


def _verdict(old_error: str | None, new_error: str | None, *, differs: bool) -> ComparisonVerdict:
    if old_error is not None:
        return "old_failed" if new_error is None else "both_failed"
    if new_error is not None:
        return "new_failed"
    return "differ" if differs else "agree"
