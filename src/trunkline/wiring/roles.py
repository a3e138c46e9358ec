"""
The roles of a process, each with its parts of a commit loop.

Where messages are handed over in the publisher's transaction all roles share one loop. Otherwise the API shares the
executor's, so that a run's first decision is in the commit that accepts it, and the bridge has its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Literal

import structlog

from trunkline import __version__
from trunkline.bridge.activity import ActivityRecorder
from trunkline.bridge.answer_writer import AnswerWriter
from trunkline.bridge.breaker import BreakerObserver
from trunkline.bridge.calls.active_calls import ActiveCalls
from trunkline.bridge.calls.agent_call import AgentCaller
from trunkline.bridge.calls.attachments import Attachments
from trunkline.bridge.calls.detached import DetachedCaller
from trunkline.bridge.calls.output_check import OutputChecks
from trunkline.bridge.lease_heartbeat import Heartbeat
from trunkline.bridge.migration.dialect_changes import DialectChangeComparison
from trunkline.bridge.migration.rollback import RollbackWatch
from trunkline.bridge.migration.shadow_calls import ShadowCalls
from trunkline.bridge.task_claimer import TaskClaimer
from trunkline.executor.bulk_jobs import BulkJobs
from trunkline.executor.candidate_lookup import CandidateLookup
from trunkline.executor.child_runs import ChildRuns
from trunkline.executor.driver import RunDriver
from trunkline.executor.event_triggers import EventTriggers
from trunkline.executor.input_sources import Timers
from trunkline.executor.output_cache import OutputCache
from trunkline.executor.retention import Retention
from trunkline.executor.run_state_cache import RunStateCache
from trunkline.executor.schedules import Schedules
from trunkline.executor.start_gates import StartGates
from trunkline.id_generation import new_id
from trunkline.services.callbacks.sender import CallbackSender
from trunkline.services.callbacks.task_updates import PUSH_KIND
from trunkline.services.commit_loop import CommitLoop, CommitPart
from trunkline.services.events.intake import EventIntake
from trunkline.services.operations.process_heartbeat import PROCESS_NAME, WakeShare
from trunkline.services.runs.intake import Intake
from trunkline.stores.base import InputsQueued, Notification, PollsDue, RunsChanged
from trunkline.stores.port.operations import Process
from trunkline.telemetry import log_events
from trunkline.wiring.descriptors import current_shares
from trunkline.wiring.event_sources import SourceConsumers
from trunkline.wiring.messaging import Messaging
from trunkline.wiring.process_context import ProcessContext
from trunkline.wiring.services import agent_client, callback_sources, migrations

log = structlog.stdlib.get_logger()

Role = Literal["api", "executor", "bridge"]
ALL_ROLES: frozenset[Role] = frozenset({"api", "executor", "bridge"})


class BridgeRole:
    """The bridge's parts, and how it starts and stops."""

    def __init__(self, context: ProcessContext, messaging: Messaging, loop: CommitLoop) -> None:
        # A new owner for each start: claims of an earlier one belong to a process that is gone.
        self._owner = new_id()
        self._context = context
        self._loop = loop
        shared = context.settings.uses_postgres
        self.heartbeat = (
            Heartbeat(context.store, self._owner, context.interceptors.timeouts.lease) if shared else None
        )
        client = agent_client(context)
        attachments = Attachments(
            context.blobs,
            context.store.runs,
            max_inline_bytes=context.settings.max_inline_bytes,
            max_request_bytes=context.settings.max_request_bytes,
        )
        self._calls = calls = ActiveCalls(
            AgentCaller(
                client,
                context.agent_routes,
                context.agent_cache,
                attachments,
                OutputChecks(context.workflows),
            ),
            context.answer_memory,
        )
        calls.on_update(loop.wake)
        context.push_notifications.on_push(loop.wake)
        context.metrics.calls_in_flight.set_function(lambda: calls.in_flight)
        context.metrics.answer_memory.set_function(lambda: context.answer_memory.taken_bytes)
        # In embedded mode, there is no other bridge for the tasks of a pool.
        pools = (context.settings.pool,) if context.settings.uses_kafka else None
        self.claims = TaskClaimer(
            messaging.broker,
            calls,
            self._owner,
            context.stopping,
            pools=pools,
            heartbeat=self.heartbeat,
            max_connections=current_shares(context.settings).calls,
        )
        detached = DetachedCaller(client)
        self._shadow_calls = ShadowCalls(
            detached, context.agent_routes, context.store, context.clock, context.metrics
        )
        self._dialect_changes = DialectChangeComparison(
            detached,
            context.agent_routes,
            context.registry,
            context.drift_recorder,
            context.store,
            context.clock,
        )
        context.agent_resolver.on_change(self._dialect_changes.note)
        self._rollback_watch = RollbackWatch(
            context.routing,
            context.store.comparisons,
            migrations(context).roll_back_if,
            context.metrics,
            context.clock,
        )
        self.callbacks = CallbackSender(
            context.store,
            context.transport,
            callback_sources(context),
            context.clock,
            context.metrics,
            transports={PUSH_KIND: context.push_transport},
            mailer=context.mailer,
            claim_lasts=context.interceptors.timeouts.callback_claim,
            look_every=context.interceptors.timeouts.callback_look,
            one_by_one=(PUSH_KIND,),
        )
        self.answers = AnswerWriter(
            messaging.broker,
            calls,
            self._owner,
            ActivityRecorder(self._owner, context.store, context.changes),
            BreakerObserver(context.metrics, context.changes),
            self._rollback_watch,
            self._shadow_calls,
        )

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Shadow calls and the rollback watch end with the block, after the last turn."""
        await self._rollback_watch.begin()
        try:
            yield
        finally:
            await self._dialect_changes.close()
            await self._shadow_calls.close()
            await self._rollback_watch.close()

    async def begin(self) -> None:
        if self.heartbeat is not None:
            await self.heartbeat.beat()
            return
        async with self._context.store.transaction() as tx:
            await self.claims.reclaim(tx)
        self.claims.committed()

    async def drain(self) -> None:
        until = monotonic() + self._context.settings.stop_timeout.total_seconds()
        with suppress(TimeoutError):
            async with asyncio.timeout(until - monotonic()):
                # A turn that had begun may have claimed something; the next one claims nothing more.
                await self._loop.wait_for_turn()
        abandoned = await self._calls.drain(max(until - monotonic(), 0))
        if abandoned:
            log.warning(log_events.CALLS_ABANDONED, calls=abandoned)


class ExecutorRole:
    """The executor's parts."""

    def __init__(self, context: ProcessContext, messaging: Messaging, loop: CommitLoop) -> None:
        timers = Timers()
        self.gates = StartGates()
        schedules = Schedules(context.triggered_runs, self.gates, context.metrics)
        self.event_triggers = EventTriggers(context.triggered_runs, self.gates, context.metrics)
        self.driver = RunDriver(
            messaging.broker,
            RunStateCache(context.workflows),
            ChildRuns(context.workflows, context.metrics),
            timers,
            context.watchers,
            context.metrics,
            CandidateLookup(context.store),
            OutputCache(context.settings.cache_max_bytes),
            schedules=schedules,
            event_triggers=self.event_triggers,
            changes=context.changes,
            gates=self.gates,
            traces=context.traces,
            events_topic=context.settings.events_topic if context.settings.uses_kafka else "",
            reply_timeout=context.settings.reply_timeout or None,
            max_run_bytes=context.settings.max_run_bytes,
        )
        self.parts: list[CommitPart] = [timers, schedules, self.event_triggers, self.gates, self.driver]
        self.retention = Retention(
            context.store,
            context.settings.retention,
            context.blobs,
            keep_audit=context.settings.audit_retention,
            keep_events=context.settings.event_retention,
            max_cache_bytes=context.settings.cache_max_bytes,
        )
        self.bulk_jobs = BulkJobs(
            context.store,
            context.workflows,
            context.routing,
            context.clock,
            context.metrics,
            context.watchers,
            loop,
            queued=context.job_queued,
            blobs=context.blobs,
            claim_lasts=context.interceptors.timeouts.job_claim,
            owns_store=not context.settings.uses_postgres,
        )


class ProcessRoles:
    """The roles of one process, put together."""

    def __init__(
        self,
        context: ProcessContext,
        messaging: Messaging,
        sources: SourceConsumers,
        roles: Collection[Role],
    ) -> None:
        self.context = context
        self.messaging = messaging
        self.sources = sources
        self.front = context.loop()
        self._back = self.front if messaging.broker.hands_over_in_transaction else context.loop()
        self.executor = ExecutorRole(context, messaging, self.front) if "executor" in roles else None
        self.intake = Intake(self.front, self._start_queued) if "api" in roles else None
        self._has_sources = "executor" in roles and bool(context.event_sources)
        receives_events = "api" in roles or self._has_sources
        self.event_intake = EventIntake(self.front, self._firing_pending) if receives_events else None
        self.bridge = BridgeRole(context, messaging, self._back) if "bridge" in roles else None
        if self.executor is not None and self.bridge is not None:
            self.executor.driver.on_task_updates(self.bridge.callbacks.wake)
        self.loops: list[CommitLoop] = []
        self.process = Process(
            id=new_id(),
            name=PROCESS_NAME,
            roles=tuple(sorted(roles)),
            pool=context.settings.pool,
            version=__version__,
            started_at=context.clock.now(),
        )
        self.wake_share = WakeShare(self.process.id)

    async def connect(self) -> None:
        """Gives the loops their parts, in the order in which one's output is the next one's input."""
        received: list[CommitPart] = [] if self.intake is None else [self.intake]
        if self.event_intake is not None:
            received.append(self.event_intake)
            if self._has_sources:
                received += await self.sources.parts(self.front, self.event_intake)
        decisions: list[CommitPart] = []
        if self.executor is not None:
            received += await self.messaging.executor_parts(self.front)
            decisions = self.executor.parts
        tasks: list[CommitPart] = []
        claims: list[CommitPart] = []
        if self.bridge is not None:
            tasks = [*await self.messaging.bridge_parts(self.bridge.claims.take_tasks, self._back)]
            tasks.append(self.bridge.answers)
            claims = [self.bridge.claims]
        if self._back is self.front:
            await self._carry(self.front, [*received, *tasks, *decisions, *claims])
        else:
            await self._carry(self.front, [*received, *decisions])
            await self._carry(self._back, [*tasks, *claims])

    def _start_queued(self) -> None:
        if self.executor is not None:
            self.executor.gates.look()

    def _firing_pending(self) -> None:
        if self.executor is not None:
            self.executor.event_triggers.look()

    async def _carry(self, loop: CommitLoop, parts: Sequence[CommitPart]) -> None:
        if parts:
            # Its own: a part that two loops had would take the turn of one for that of the other.
            loop.set_parts([*parts, *await self.messaging.last_parts()])
            self.loops.append(loop)

    def on_notification(self, notification: Notification) -> None:
        match notification:
            case InputsQueued(wakes):
                # Perhaps a run that was begun, which has not moved yet.
                self.context.watchers.notify_all()
                if self.executor is not None and self.wake_share.is_ours(wakes):
                    self.front.wake()
            case PollsDue():
                if self.bridge is not None:
                    self._back.wake()
            case RunsChanged(run_ids, ended):
                self.context.watchers.notify(run_ids, dict.fromkeys(ended))
