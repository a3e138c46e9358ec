"""What a process says about itself: whether it can take work (`/readyz`), and what it counts (`/metrics`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trunkline.api.services import OK
from trunkline.errors import TrunklineError
from trunkline.machine.state import RUN_STATUSES
from trunkline.services.commit_loop import CommitLoop
from trunkline.services.migration.states import stages_of
from trunkline.stores.base import Store
from trunkline.telemetry.metrics import Metrics
from trunkline.wiring.messaging import Messaging


class ReadinessProbe:
    def __init__(self, store: Store, loops: Sequence[CommitLoop], messaging: Messaging) -> None:
        self._store = store
        self._loops = loops
        self._messaging = messaging

    async def __call__(self) -> Mapping[str, str]:
        failures = {"store": await self._store_problem(), **await self._messaging.dependency_problems()}
        return {dependency: failure or OK for dependency, failure in failures.items()}

    async def _store_problem(self) -> str | None:
        try:
            await self._store.check()
        except TrunklineError as exc:
            return exc.message
        return next((loop.failure for loop in self._loops if loop.failure is not None), None)


class MetricsPage:
    """The metrics with the backlog as it is now."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics

    async def __call__(self) -> bytes:
        backlog = await self._store.backlog.count()
        queues = {
            "inbox": backlog.inbox,
            "timers": backlog.timers,
            "outbox": backlog.outbox,
            "dead_letters": backlog.dead_letters,
            "callbacks": backlog.callbacks,
            "push_configs_disabled": backlog.disabled_push_configs,
            "tasks_queued": backlog.queued_tasks,
            "tasks_claimed": backlog.claimed_tasks,
            "tasks_remote": backlog.remote_tasks,
            "tasks_without_secret": backlog.tasks_without_secret,
        }
        # A status that no run has is 0, not what it was when the last one had it.
        runs = {status: backlog.runs_by_status.get(status, 0) for status in RUN_STATUSES}
        self._metrics.show_backlog(runs, queues, backlog.without_wake_reason)
        self._metrics.show_agents(backlog.breakers, backlog.queued_by_agent)
        self._metrics.show_migrations(await stages_of(self._store))
        return self._metrics.render()
