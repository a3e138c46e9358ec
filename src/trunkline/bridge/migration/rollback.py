"""
Automatic rollback: counts how calls to source and target end, and rolls a migration back when the target is too bad.

The ends are noted in the transaction that writes the answers, so that all bridges judge by the same calls. The rollback
is a separate transaction, which only one of them can win. A bridge that dies between the two leaves it to the next
call, or to the next start. A migration whose source cannot be called is not rolled back: a bad target still answers
some calls. The source is tried again at most once a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

import msgspec
import structlog

from trunkline.agents.migration.rollback_rules import (
    EMPTY_WINDOW,
    CallWindow,
    EndpointCallEnd,
    after_calls,
    decode_window,
    encode_window,
    reason_to_roll_back,
)
from trunkline.agents.migration.routing import EndpointName, MigrationRevision
from trunkline.bridge.breaker import NOT_CAUSED_BY_AGENT
from trunkline.bridge.calls.results import CallResult
from trunkline.clock import Clock, Instant, after, seconds_between
from trunkline.errors import NotFound, NotReady, Unavailable
from trunkline.services.migration.routing_table import RoutingTable
from trunkline.stores.base import Transaction
from trunkline.stores.port.agents.agent_events import ComparisonReads
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics

log = structlog.stdlib.get_logger()

_WHO = "trunkline"
# Seconds until a store that is away is asked again.
_RETRY_PAUSE = 0.5
# Until a source that cannot be called is tried again.
_SOURCE_PAUSE = timedelta(minutes=1)

# Caused by the address and the settings of the target, though the agent was not called.
_CAUSED_BY_ENDPOINT = frozenset(
    {
        "agent_address_forbidden",
        "agent_transport_unavailable",
        "agent_url_invalid",
        "agent_program_unknown",
        "request_not_encodable",
    }
)
_NOT_COUNTED = NOT_CAUSED_BY_AGENT - _CAUSED_BY_ENDPOINT


class RollBack(Protocol):
    async def __call__(self, agent_id: str, *, who: str, why: str, only_if: int) -> bool:
        """
        False: the last event of the migration is not `only_if` any more.

        Raises `NotReady` where the source cannot be called, and `Unavailable`.
        """
        ...


class _ObservedCall(msgspec.Struct, frozen=True):
    agent_id: str
    endpoint: EndpointName
    migration: MigrationRevision
    end: EndpointCallEnd


class _FailingTarget(msgspec.Struct, frozen=True):
    agent_id: str
    agent: str
    rollout_since: int
    reason: str


class RollbackWatch:
    def __init__(
        self,
        routes: RoutingTable,
        comparisons: ComparisonReads,
        roll_back: RollBack,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._clock = clock
        # When to try the sources again that could not be called, by agent id.
        self._refused_until: dict[str, Instant] = {}
        self._routes = routes
        self._comparisons = comparisons
        self._roll_back = roll_back
        self._metrics = metrics
        self._failing_targets: list[_FailingTarget] = []
        self._rolling_back: dict[str, asyncio.Task[None]] = {}

    async def note(self, tx: Transaction, results: Sequence[CallResult]) -> None:
        noted = [call for item in results if item.route is not None and (call := _observed(item)) is not None]
        if not noted:
            return
        stored = await tx.comparisons.lock_calls({call.agent_id for call in noted})
        windows = {place: decode_window(calls) for place, calls in stored.items()}
        changed: dict[tuple[str, EndpointName], CallWindow] = {}
        for call in noted:
            place = (call.agent_id, call.endpoint)
            before = changed.get(place) or windows.get(place, EMPTY_WINDOW)
            changed[place] = after_calls(
                before, call.migration.rollout_since, [call.end], call.migration.state.limits
            )
        await tx.comparisons.put_calls({place: encode_window(window) for place, window in changed.items()})
        windows |= changed
        self._failing_targets = [
            failing
            for agent_id in {call.agent_id for call in noted}
            if (failing := self._judge(agent_id, windows)) is not None
        ]

    def _judge(
        self, agent_id: str, windows: dict[tuple[str, EndpointName], CallWindow]
    ) -> _FailingTarget | None:
        new = windows.get((agent_id, "new"), EMPTY_WINDOW)
        latest = self._routes.latest(agent_id)
        if latest is None or not latest.rollout_since or latest.rollout_since != new.rollout_since:
            return None
        old = windows.get((agent_id, "old"), EMPTY_WINDOW)
        reason = reason_to_roll_back(old, new, latest.state.limits)
        return None if reason is None else _FailingTarget(agent_id, latest.agent, new.rollout_since, reason)

    def committed(self) -> None:
        for failing in self._failing_targets:
            self._start_rollback(failing)
        self._failing_targets = []

    def rolled_back(self) -> None:
        self._failing_targets = []

    @property
    def is_busy(self) -> bool:
        """Whether a rollback is running."""
        return bool(self._rolling_back)

    async def begin(self) -> None:
        """Acts on what bridges that are gone have noted."""
        await self._routes.refresh()
        for agent_id in self._routes.agents_in_rollout():
            calls = await self._comparisons.calls(agent_id)
            windows: dict[tuple[str, EndpointName], CallWindow] = {
                (agent_id, endpoint): decode_window(window) for endpoint, window in calls.items()
            }
            failing = self._judge(agent_id, windows)
            if failing is not None:
                self._start_rollback(failing)

    async def close(self) -> None:
        """A rollback that is running is left to the next start."""
        going = list(self._rolling_back.values())
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)

    def _start_rollback(self, failing: _FailingTarget) -> None:
        if failing.agent_id in self._rolling_back:
            return
        if self._clock.now() < self._refused_until.get(failing.agent_id, Instant(0)):
            return
        task = asyncio.create_task(self._roll_back_until_done(failing))
        self._rolling_back[failing.agent_id] = task
        task.add_done_callback(lambda _: self._rolling_back.pop(failing.agent_id, None))

    async def _roll_back_until_done(self, failing: _FailingTarget) -> None:
        while True:
            try:
                if await self._try_rollback(failing):
                    return
            except NotFound:
                # Deleted, with its migration.
                return
            except NotReady as exc:
                self._refused_until[failing.agent_id] = after(self._clock.now(), _SOURCE_PAUSE)
                self._metrics.rollbacks_refused.labels(failing.agent).inc()
                log.error(
                    log_events.MIGRATION_NOT_ROLLED_BACK,
                    agent_name=failing.agent,
                    reason=failing.reason,
                    error=exc.message,
                    fix=exc.fix,
                )
                return
            except Unavailable as exc:
                log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
                await asyncio.sleep(_RETRY_PAUSE)

    async def _try_rollback(self, failing: _FailingTarget) -> bool:
        """False: the migration has changed meanwhile, and must be checked again."""
        await self._routes.refresh()
        latest = self._routes.latest(failing.agent_id)
        if latest is None or latest.rollout_since != failing.rollout_since:
            # Another bridge or a person was faster.
            return True
        if not await self._roll_back(failing.agent_id, who=_WHO, why=failing.reason, only_if=latest.event):
            return False
        self._metrics.rollbacks.labels(failing.agent).inc()
        log.warning(log_events.MIGRATION_ROLLED_BACK, agent_name=failing.agent, reason=failing.reason)
        await self._routes.refresh()
        return True


def _observed(item: CallResult) -> _ObservedCall | None:
    route, answer, result = item.route, item.answer, item.result
    if route is None or route.migration is None or not route.migration.rollout_since:
        return None
    if answer.new_status != "done" or result is None:
        return None
    if result.status not in {"success", "error", "interrupted"}:
        return None
    if result.error is not None and result.error.code in _NOT_COUNTED:
        return None
    end = EndpointCallEnd(failed=result.error is not None, ms=_milliseconds(item))
    return _ObservedCall(route.agent.id, route.endpoint, route.migration, end)


def _milliseconds(item: CallResult) -> int:
    """From the first message to the end, whichever bridges have polled in between."""
    route, result, deadline = item.route, item.result, item.claim.deadline
    if route is None or result is None or deadline is None:
        return 0
    timeout = item.claim.task.timeout_ms or route.agent.timeout_ms
    return max(0, timeout - round(seconds_between(result.at, deadline) * 1000))
