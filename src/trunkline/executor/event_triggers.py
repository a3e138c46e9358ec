"""
Triggers that listen to events and to the ends of runs: starts their runs, one for each pending firing.

A pending firing is stored in the transaction that stores the event or ends the run, so none is lost. The transaction
that takes it also inserts the run, its first queued input and the firing, so none counts twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import structlog

from trunkline.clock import Instant, after, rfc3339
from trunkline.errors import Invalid
from trunkline.executor.start_gates import StartGates
from trunkline.id_generation import new_id
from trunkline.jsontypes import Json, JsonObject, decode
from trunkline.machine.state import RunState
from trunkline.services.runs.queued_starts import key_text
from trunkline.services.triggers.starts import (
    FiringContext,
    StartedRuns,
    TriggeredRuns,
    new_firing,
    prepared_or_reason,
)
from trunkline.stores.base import InputsQueued, NewRun, Transaction
from trunkline.stores.port.automation.received_events import StoredEvent
from trunkline.stores.port.automation.triggers import EndedRun, Firing, PendingFiring, RunEnd
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.triggers import run_end_topic
from trunkline.workflow import ExpressionError

log = structlog.stdlib.get_logger()

# Each may bring the output of a run, which can be long.
MAX_FIRINGS_PER_TURN = 32
# A chain of runs that start one another ends here.
MAX_DEPTH = 10
# Pending firings that other processes store are found by this poll.
_LOOK_EVERY = timedelta(seconds=1)
_NOW = Instant(0)


class EventTriggers:
    """A part of the commit loop, before the driver: what it starts takes its first turn in the same commit."""

    def __init__(self, runs: TriggeredRuns, gates: StartGates, metrics: Metrics) -> None:
        self._runs = runs
        self._gates = gates
        self._started = StartedRuns(metrics)
        self._look_at = _NOW

    def look(self) -> None:
        """A firing is stored in this turn, or was stored in an earlier one."""
        self._look_at = _NOW

    async def runs_ended(self, tx: Transaction, states: Iterable[RunState]) -> None:
        """The driver ends these runs: triggers that listen to them are looked at in the next turn."""
        ends = [
            RunEnd(state.id, run_end_topic(state.workflow.definition.name, state.status))
            for state in states
            # A block is a part of a run that will end.
            if state.block is None
        ]
        if ends and await tx.triggers.note_run_ends(ends):
            await tx.notify(InputsQueued())
            self.look()

    async def work(self, tx: Transaction) -> None:
        self._started.clear()
        if self._look_at > tx.now:
            return
        taken = await tx.triggers.take_pending(MAX_FIRINGS_PER_TURN)
        self._look_at = _NOW if len(taken) == MAX_FIRINGS_PER_TURN else after(tx.now, _LOOK_EVERY)
        if not taken:
            return
        firings: list[Firing] = []
        starts: list[tuple[NewRun, PendingFiring]] = []
        for pending in taken:
            prepared = await self._prepare(pending, tx.now)
            if isinstance(prepared, Firing):
                firings.append(prepared)
            else:
                starts.append((prepared, pending))
        existing = await tx.runs.insert([run for run, _ in starts])
        for (run, pending), earlier in zip(starts, existing, strict=True):
            if earlier is None:
                self._started.runs.append(run)
                firings.append(new_firing(pending.trigger.id, tx.now, "started", run_id=run.id))
            else:
                reason = f"Run {earlier.id} was started for the same key before."
                firings.append(new_firing(pending.trigger.id, tx.now, "skipped", reason=reason))
        await tx.triggers.put_firings(firings)
        await self._gates.begin(tx, self._started.runs)

    async def _prepare(self, taken: PendingFiring, now: Instant) -> NewRun | Firing:
        """The run to start, or the firing that says why there is none."""
        prepared = await prepared_or_reason(taken.trigger.name, self._run_or_reason(taken, now))
        if isinstance(prepared, str):
            return new_firing(taken.trigger.id, now, "failed", reason=prepared)
        return prepared

    async def _run_or_reason(self, taken: PendingFiring, now: Instant) -> NewRun | Firing:
        compiled = self._runs.compiled(taken.trigger)
        if not compiled.definition.enabled:
            return new_firing(taken.trigger.id, now, "skipped", reason="The trigger was paused.")
        if isinstance(taken.cause, EndedRun) and taken.cause.depth >= MAX_DEPTH:
            reason = (
                f"Run {taken.cause.id} is the last of {MAX_DEPTH} runs that started one another. Runs that triggers"
                " start when a run ends and child runs of steps count together."
            )
            log.warning(log_events.TRIGGER_FAILED, trigger=taken.trigger.name, error=reason)
            return new_firing(taken.trigger.id, now, "failed", reason=reason)
        context = _context(taken, now)
        scope = context.scope(taken.trigger.name).__getitem__
        if compiled.filter is not None:
            try:
                holds = compiled.filter.holds(scope)
            except ExpressionError as exc:
                return new_firing(
                    taken.trigger.id, now, "filtered", reason=f"The filter cannot be evaluated: {exc}"
                )
            if not holds:
                return new_firing(taken.trigger.id, now, "filtered", reason="The filter is false.")
        if compiled.idempotency_key is not None:
            try:
                text = key_text(compiled.idempotency_key.evaluate(scope))
            except ExpressionError as exc:
                raise Invalid(f"The idempotency key of the trigger cannot be evaluated: {exc}.") from exc
            if text is not None:
                context = context._replace(key=f"trigger/{taken.trigger.id}/key/{text}")
        return await self._runs.prepare(taken.trigger, context)

    def committed(self) -> None:
        self._started.committed()

    def rolled_back(self) -> None:
        self._started.clear()
        self.look()

    def next_wake(self) -> Instant | None:
        return self._look_at


def _context(taken: PendingFiring, now: Instant) -> FiringContext:
    trigger, cause = taken
    started_by = f"trigger:{trigger.name}"
    match cause:
        case StoredEvent():
            key = f"trigger/{trigger.id}/event/{cause.number}"
            return FiringContext(now, None, key, new_id(), started_by, event=_event(cause))
        case EndedRun():
            key = f"trigger/{trigger.id}/run/{cause.id}"
            depth = cause.depth + 1
            return FiringContext(
                now, None, key, cause.correlation_id, started_by, run=_run(cause), depth=depth
            )


def _event(event: StoredEvent) -> JsonObject:
    """As `wait_for` shows it."""
    return {
        "type": event.type,
        "key": event.key,
        "data": decode(event.data),
        "id": event.id,
        "at": rfc3339(event.at),
        "source": event.source,
    }


def _run(run: EndedRun) -> JsonObject:
    output: Json = None if run.output is None else decode(run.output)
    error: JsonObject | None = None
    if run.error is not None:
        error = {"code": run.error.code, "message": run.error.message, "step": run.error.step}
    return {
        "id": run.id,
        "workflow": run.workflow,
        "version": run.workflow_version,
        "status": run.status,
        "output": output,
        "error": error,
        "correlation_id": run.correlation_id,
    }
