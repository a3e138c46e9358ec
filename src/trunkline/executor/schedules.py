"""
Schedules: starts runs for the triggers that are due, each scheduled instant once.

A trigger is claimed until the transaction ends. The run, its first queued input, the firing and the next due time are
written in it. So neither a crash nor a second executor starts a run twice or leaves one out. The idempotency key of
the run is derived from trigger and scheduled instant, which holds for a backfill, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

import msgspec
import structlog

from trunkline.clock import Instant, after, rfc3339
from trunkline.executor.start_gates import StartGates
from trunkline.id_generation import new_id
from trunkline.ids import RunId
from trunkline.machine.inputs import CancelRequested, encode_input
from trunkline.services.triggers.starts import (
    FiringContext,
    StartedRuns,
    TriggeredRuns,
    prepared_or_reason,
    schedule_key,
)
from trunkline.stores.base import InputsQueued, NewRun, QueuedInput, Transaction
from trunkline.stores.port.automation.triggers import Firing, FiringOutcome, TriggerRecord
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.triggers import CompiledTrigger, take_due

log = structlog.stdlib.get_logger()

_MAX_TRIGGERS_PER_TURN = 256
# Of one trigger, so that one that has much to catch up on leaves time for the others.
_MAX_FIRINGS_PER_TURN = 64
# Of one trigger: more would hide that its runs take longer than its schedule allows.
MAX_QUEUED = 100
# With `cancel_previous` there is one, unless people fire it by hand as well.
_MAX_CANCELLED = 100
# Triggers that other processes save are found by this poll.
_LOOK_EVERY = timedelta(seconds=1)
_NOW = Instant(0)


class Schedules:
    """A part of the commit loop, before the driver: what it starts takes its first turn in the same commit."""

    def __init__(self, runs: TriggeredRuns, gates: StartGates, metrics: Metrics) -> None:
        self._runs = runs
        self._gates = gates
        self._started = StartedRuns(metrics)
        self._next: Instant | None = None
        self._look_at = _NOW

    async def work(self, tx: Transaction) -> None:
        self._started.clear()
        if self._look_at > tx.now:
            return
        due = await tx.triggers.next_due()
        if due is not None and due <= tx.now:
            await self._fire(tx, await tx.triggers.claim_due(_MAX_TRIGGERS_PER_TURN))
            due = await tx.triggers.next_due()
        self._next = due
        self._look_at = after(tx.now, _LOOK_EVERY)
        if due is not None:
            self._look_at = min(self._look_at, due)

    async def _fire(self, tx: Transaction, claimed: list[TriggerRecord]) -> None:
        plans = [_TriggerTurn(record, tx.now, self._compiled(record)) for record in claimed]
        watching = [plan for plan in plans if plan.looks_at_runs]
        running = await tx.triggers.unfinished_runs(
            {plan.record.name for plan in watching}, each=_MAX_CANCELLED
        )
        queued = await tx.triggers.queued_firings(
            {plan.record.id for plan in watching if plan.record.awaits_runs}, each=MAX_QUEUED
        )
        for plan in plans:
            plan.decide(running.get(plan.record.name, ()), queued.get(plan.record.id, ()))
        for plan in plans:
            await self._prepare(plan)
        starts = [(plan, run, start) for plan in plans for run, start in plan.prepared]
        existing = await tx.runs.insert([run for _, run, _ in starts])
        firings = [firing for plan in plans for firing in plan.firings]
        inputs = [item for plan in plans for item in plan.cancels]
        for (plan, run, start), earlier in zip(starts, existing, strict=True):
            if earlier is None:
                self._started.runs.append(run)
                plan.has_started = True
                firings.append(start.firing("started", run_id=run.id))
            elif start.was_queued:
                firings.append(start.firing("started", run_id=earlier.id))
        await tx.triggers.put_firings(firings)
        await tx.triggers.update([plan.settled() for plan in plans])
        if inputs:
            await tx.input_queue.put(inputs)
            await tx.notify(InputsQueued())
        await self._gates.begin(tx, self._started.runs)

    def _compiled(self, record: TriggerRecord) -> CompiledTrigger | None:
        try:
            return self._runs.compiled(record)
        except Exception:
            # Whatever it is about this trigger, the others go on; it is looked at again when it is saved again.
            log.exception(log_events.TRIGGER_FAILED, trigger=record.name)
            return None

    async def _prepare(self, plan: _TriggerTurn) -> None:
        for start in plan.starts:
            context = FiringContext(
                fired_at=plan.now,
                scheduled_at=start.scheduled_at,
                key=None if start.scheduled_at is None else schedule_key(plan.record.id, start.scheduled_at),
                correlation_id=new_id(),
                started_by=f"trigger:{plan.record.name}",
            )
            run = await prepared_or_reason(plan.record.name, self._runs.prepare(plan.record, context))
            if isinstance(run, str):
                plan.firings.append(start.firing("failed", reason=run))
            else:
                plan.prepared.append((run, start))

    async def runs_ended(self, tx: Transaction, triggers: Collection[str]) -> None:
        """The driver ends runs of these triggers: one that awaits them is looked at in the next turn."""
        if await tx.triggers.runs_ended(triggers):
            self._look_at = self._next = _NOW

    def committed(self) -> None:
        self._started.committed()

    def rolled_back(self) -> None:
        # Look again: what was taken is back.
        self._started.clear()
        self._next = None
        self._look_at = _NOW

    def next_wake(self) -> Instant | None:
        return self._next


class _Start(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a trigger is to start."""

    trigger_id: str
    now: Instant
    scheduled_at: Instant | None
    # The id of its firing, which may be queued already.
    firing_id: str
    was_queued: bool = False

    def firing(
        self, outcome: FiringOutcome, *, run_id: RunId | None = None, reason: str | None = None
    ) -> Firing:
        return Firing(
            id=self.firing_id,
            trigger_id=self.trigger_id,
            at=self.now,
            outcome=outcome,
            scheduled_at=self.scheduled_at,
            run_id=run_id,
            reason=reason,
        )


class _TriggerTurn:
    """What one turn does about one trigger."""

    def __init__(self, record: TriggerRecord, now: Instant, trigger: CompiledTrigger | None) -> None:
        self.record = record
        self.now = now
        # None: it cannot fire, or is paused.
        self._schedule = trigger.schedule if trigger is not None and trigger.definition.enabled else None
        self._following = record.scheduled_at
        self._is_busy = False
        self._waiting = 0
        self._is_running = False
        self.has_started = False
        self.looks_at_runs = self._schedule is not None and self._schedule.overlap != "allow"
        self.starts: list[_Start] = []
        # Those of `starts` that can be inserted.
        self.prepared: list[tuple[NewRun, _Start]] = []
        self.firings: list[Firing] = []
        self.cancels: list[QueuedInput] = []

    def decide(self, running: Sequence[RunId], queued: Sequence[Firing]) -> None:
        """`running`: unfinished runs of the trigger. `queued`: its firings that wait for their end."""
        if self._schedule is None:
            return
        self._is_busy = self._is_running = bool(running)
        self._waiting = len(queued)
        if queued and not running:
            self._start(queued[0].scheduled_at, queued=queued[0])
            self._waiting -= 1
        due = self._take_due()
        for instant in due:
            match self._schedule.overlap:
                case "allow":
                    self._start(instant)
                case "skip":
                    self._start_unless_busy(instant, running)
                case "queue":
                    self._queue_if_busy(instant)
                case "cancel_previous":
                    self._supersede(instant, due[-1], running)

    def _take_due(self) -> Sequence[Instant]:
        expected, schedule = self.record.scheduled_at, self._schedule
        if schedule is None or expected is None or schedule.due(self.record.id, expected) > self.now:
            return ()
        due = take_due(schedule, self.record.id, expected, self.now, limit=_MAX_FIRINGS_PER_TURN)
        self._following = due.following
        if due.missed is not None:
            first, last = due.missed
            until = "" if last == first else f", and all up to {rfc3339(last)}"
            self._note("missed", first, f"No executor was running{until} (catch_up: {schedule.catch_up}).")
        return due.instants

    def _start_unless_busy(self, instant: Instant, running: Sequence[RunId]) -> None:
        if self._is_busy:
            which = f"Run {running[0]}" if running else "The run"
            self._note("skipped", instant, f"{which} of an earlier firing has not ended (overlap: skip).")
        else:
            self._start(instant)

    def _queue_if_busy(self, instant: Instant) -> None:
        if not self._is_busy and not self._waiting:
            self._start(instant)
        elif self._waiting < MAX_QUEUED:
            self._waiting += 1
            self._note("queued", instant, None)
        else:
            self._note("skipped", instant, f"{MAX_QUEUED} firings are already queued (overlap: queue).")

    def _supersede(self, instant: Instant, last: Instant, running: Sequence[RunId]) -> None:
        if instant != last:
            self._note("skipped", instant, "A later firing is due as well (overlap: cancel_previous).")
            return
        cancel = encode_input(CancelRequested())
        self.cancels += [QueuedInput(run_id, "cancel", cancel) for run_id in running]
        self._start(instant)

    def _start(self, instant: Instant | None, *, queued: Firing | None = None) -> None:
        self._is_busy = True
        self.starts.append(
            _Start(
                trigger_id=self.record.id,
                now=self.now,
                scheduled_at=instant,
                firing_id=new_id() if queued is None else queued.id,
                was_queued=queued is not None,
            )
        )

    def _note(self, outcome: FiringOutcome, instant: Instant, reason: str | None) -> None:
        start = _Start(trigger_id=self.record.id, now=self.now, scheduled_at=instant, firing_id=new_id())
        self.firings.append(start.firing(outcome, reason=reason))

    def settled(self) -> TriggerRecord:
        """The trigger as this turn leaves it."""
        following = None if self._schedule is None else self._following
        due = None
        if self._schedule is not None and following is not None:
            due = self._schedule.due(self.record.id, following)
        if self._waiting and not self._is_running and not self.has_started:
            # No run will end: the next one that waits is for the next turn.
            due = self.now
        return msgspec.structs.replace(self.record, scheduled_at=following, due=due)
