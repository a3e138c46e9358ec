"""
Triggers: saved, shown, paused, and fired by hand. Executors fire them by their schedules.

A trigger is saved with the next scheduled instant, so that an executor finds it by an index and reads nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import msgspec
import structlog

from trunkline.clock import Clock, Instant, after, rfc3339
from trunkline.errors import Conflict, Finding, Invalid, NotFound
from trunkline.id_generation import new_id
from trunkline.ids import RunId
from trunkline.jsontypes import Json
from trunkline.machine.inputs import RunRequested
from trunkline.messages import TraceContext
from trunkline.services.heavy_work import HeavyWork
from trunkline.services.operations.audit_log import audit_entry, current_actor
from trunkline.services.runs.intake import Intake
from trunkline.services.runs.runs import StartedRun
from trunkline.services.triggers.starts import FiringContext, TriggeredRuns, schedule_key
from trunkline.services.workflows import Workflows
from trunkline.stores.base import NewRun, Store, Transaction
from trunkline.stores.port.automation.triggers import Firing, TriggerRecord
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.triggers import (
    CompiledTrigger,
    TriggerDocument,
    canonical_form,
    definition_from_canonical,
    load_schedule,
    load_trigger,
)

log = structlog.stdlib.get_logger()

PREVIEWED = 10
MAX_BACKFILLED = 1_000
# That one answer shows.
MAX_UPCOMING_TRIGGERS = 500
MAX_UPCOMING_FIRINGS = 100
# To one type of event, or to the end of runs of one workflow: each of them may start a run.
MAX_LISTENERS = 100
# Started at a time: together they are one commit or two.
_BACKFILL_BATCH = 100
_LIST_THEM = "List the triggers: trunkline triggers list."


class SavedTrigger(NamedTuple):
    record: TriggerRecord
    created: bool


class BackfilledRun(NamedTuple):
    scheduled_at: Instant
    run_id: RunId
    # False: the instant had started it before.
    created: bool


class UpcomingFirings(NamedTuple):
    record: TriggerRecord
    # Scheduled instants, the next one first.
    instants: Sequence[Instant]
    has_more: bool


class Triggers:
    def __init__(
        self,
        store: Store,
        workflows: Workflows,
        runs: TriggeredRuns,
        intake: Intake,
        clock: Clock,
        metrics: Metrics,
        work: HeavyWork | None = None,
    ) -> None:
        self._store = store
        self._workflows = workflows
        self._runs = runs
        self._intake = intake
        self._clock = clock
        self._metrics = metrics
        self._work = work or HeavyWork()

    async def create(self, text: bytes) -> TriggerRecord:
        """Raises `AlreadyExists`, and `Invalid` with every finding and its place in the text."""
        compiled = await self._load(text)
        async with self._store.transaction() as tx:
            record = _scheduled(_new_record(compiled, tx.now), compiled, tx.now)
            await tx.triggers.insert(record)
            await self._listen(tx, record, compiled)
            await tx.audit.put([audit_entry("trigger", "create", record.name)])
        log.info(log_events.TRIGGER_SAVED, trigger=record.name, version=record.version)
        return record

    async def save(self, name: str, text: bytes) -> SavedTrigger:
        """Create it or replace its definition. Without a change it stays as it is."""
        compiled = await self._load(text, name)
        async with self._store.transaction() as tx:
            earlier = await tx.triggers.get(name)
            if earlier is None:
                record = _scheduled(_new_record(compiled, tx.now), compiled, tx.now)
                await tx.triggers.insert(record)
                await self._listen(tx, record, compiled)
            elif earlier.definition == canonical_form(compiled.definition):
                return SavedTrigger(earlier, False)
            else:
                record = await self._replace(tx, earlier, compiled)
            action = "create" if earlier is None else "update"
            await tx.audit.put([audit_entry("trigger", action, name, version=record.version)])
        log.info(log_events.TRIGGER_SAVED, trigger=name, version=record.version)
        return SavedTrigger(record, earlier is None)

    async def set_enabled(self, name: str, *, enabled: bool) -> TriggerRecord:
        """A firing that is missed while the trigger is paused is not made up for."""
        async with self._store.transaction() as tx:
            earlier = await tx.triggers.get(name)
            if earlier is None:
                raise _unknown(name)
            definition = definition_from_canonical(earlier.definition)
            if definition.enabled == enabled:
                return earlier
            changed = msgspec.structs.replace(definition, enabled=enabled)
            compiled = self._runs.compiled(
                msgspec.structs.replace(
                    earlier, definition=canonical_form(changed), version=earlier.version + 1
                )
            )
            record = await self._replace(tx, earlier, compiled)
            action = "resume" if enabled else "pause"
            await tx.audit.put([audit_entry("trigger", action, name, version=record.version)])
        return record

    async def _replace(
        self, tx: Transaction, earlier: TriggerRecord, compiled: CompiledTrigger
    ) -> TriggerRecord:
        before = definition_from_canonical(earlier.definition)
        record = msgspec.structs.replace(
            earlier,
            definition=canonical_form(compiled.definition),
            version=earlier.version + 1,
            updated_at=tx.now,
        )
        keeps_time = before.schedule == compiled.definition.schedule and before.enabled
        record = _scheduled(record, compiled, tx.now, expected=earlier.scheduled_at if keeps_time else None)
        if earlier.awaits_runs and not record.awaits_runs:
            await _drop_queued(tx, record)
        await tx.triggers.update([record])
        if before.topics != compiled.definition.topics:
            await self._listen(tx, record, compiled)
        return record

    async def _listen(self, tx: Transaction, record: TriggerRecord, compiled: CompiledTrigger) -> None:
        topics = compiled.definition.topics
        await tx.triggers.set_topics(record.id, topics)
        if topics and await tx.triggers.listeners(topics) > MAX_LISTENERS:
            raise Invalid(
                f"{MAX_LISTENERS} triggers already listen to the same events or runs as the trigger {record.name}.",
                fix="Start one workflow, and let it start the others.",
            )

    async def delete(self, name: str) -> None:
        """With its history. Its runs go on."""
        async with self._store.transaction() as tx:
            if not await tx.triggers.delete(name):
                raise _unknown(name)
            await tx.audit.put([audit_entry("trigger", "delete", name)])
        log.info(log_events.TRIGGER_DELETED, trigger=name)

    async def get(self, name: str) -> TriggerRecord:
        found = await self._store.triggers.get(name)
        if found is None:
            raise _unknown(name)
        return found

    async def list(self, *, limit: int, after: str | None = None) -> Sequence[TriggerRecord]:
        """In the order of their names; `after` is the last name seen."""
        return await self._store.triggers.page(limit=limit, after=after)

    async def firings(self, name: str, *, limit: int, before: str | None = None) -> Sequence[Firing]:
        """Newest first; `before` is the last id seen."""
        return await self._store.triggers.firings((await self.get(name)).id, limit=limit, before=before)

    def next_firings(self, record: TriggerRecord, count: int = PREVIEWED) -> Sequence[Instant]:
        """The scheduled instants that come next; none for a paused trigger."""
        schedule = self._runs.compiled(record).schedule
        if schedule is None or record.scheduled_at is None:
            return ()
        return schedule.preview(Instant(record.scheduled_at - 1), count)

    async def last_firings(self, records: Sequence[TriggerRecord]) -> dict[str, Firing]:
        """The newest one of each, by the id of the trigger."""
        return await self._store.triggers.last_firings([record.id for record in records])

    async def upcoming(self, span: timedelta) -> tuple[Sequence[UpcomingFirings], bool]:
        """What schedules fire within this time from now; False: more triggers exist than were looked at."""
        now = self._clock.now()
        records = await self._store.triggers.page(limit=MAX_UPCOMING_TRIGGERS + 1)
        found: list[UpcomingFirings] = []
        for record in records[:MAX_UPCOMING_TRIGGERS]:
            times = self.next_firings(record, MAX_UPCOMING_FIRINGS + 1)
            within = [time for time in times if time <= after(now, span)]
            if within:
                has_more = len(within) > MAX_UPCOMING_FIRINGS
                found.append(UpcomingFirings(record, within[:MAX_UPCOMING_FIRINGS], has_more))
        return found, len(records) <= MAX_UPCOMING_TRIGGERS

    async def check(self, text: bytes) -> Sequence[Instant]:
        """Raises `Invalid` as `save` does; otherwise when the trigger would fire next by its schedule."""
        compiled = await self._load(text)
        if compiled.schedule is None or not compiled.definition.enabled:
            return ()
        return compiled.schedule.preview(self._clock.now(), PREVIEWED)

    async def preview(self, text: bytes) -> Sequence[Instant]:
        """When a schedule would fire next."""
        now = self._clock.now()

        def load() -> Sequence[Instant]:
            return load_schedule(TriggerDocument(text, "schedule"), now).preview(now, PREVIEWED)

        return await self._work.run(load)

    async def fire(
        self,
        name: str,
        *,
        run_input: tuple[Json] | None,
        correlation_id: str,
        idempotency_key: str | None = None,
        trace: TraceContext | None = None,
    ) -> StartedRun:
        """Start a run now, also of a paused trigger and whatever `overlap` says."""
        record = await self.get(name)
        key = None if idempotency_key is None else f"trigger/{record.id}/fire/{idempotency_key}"
        context = FiringContext(self._clock.now(), None, key, correlation_id, current_actor(), trace)
        run = await self._runs.prepare(record, context, run_input=run_input)
        audit = audit_entry("trigger", "fire", name, run=run.id)
        existing = await self._intake.start(run, RunRequested(), audit, _firing(record, run, None))
        if existing is None:
            self._count(run)
            return StartedRun(run.id, created=True)
        if existing.request_digest != run.request_digest:
            raise Invalid(
                f"The Idempotency-Key was already used for run {existing.id}, with a different request.",
                fix="Use a new key for a new run, or repeat the original request.",
            )
        return StartedRun(existing.id, created=False)

    async def backfill(self, name: str, start: Instant, end: Instant) -> Sequence[BackfilledRun]:
        """
        Start a run for each scheduled instant from `start` up to `end`, which may be now at the latest.

        An instant that has started a run before starts no second one, so a backfill can be repeated.
        """
        record = await self.get(name)
        instants = self._instants(record, start, min(end, self._clock.now()))
        async with self._store.transaction() as tx:
            entry = audit_entry(
                "trigger", "backfill", name, since=rfc3339(start), until=rfc3339(end), firings=len(instants)
            )
            await tx.audit.put([entry])
        started: list[BackfilledRun] = []
        for place in range(0, len(instants), _BACKFILL_BATCH):
            batch = instants[place : place + _BACKFILL_BATCH]
            started += await asyncio.gather(*(self._fill(record, instant) for instant in batch))
        return started

    def _instants(self, record: TriggerRecord, start: Instant, end: Instant) -> Sequence[Instant]:
        schedule = self._runs.compiled(record).schedule
        if schedule is None:
            raise Conflict(
                f"The trigger {record.name} has no schedule, so there is nothing to backfill.",
                fix=f"Fire it instead: trunkline triggers fire {record.name}.",
            )
        found: list[Instant] = []
        instant = schedule.next(Instant(start - 1))
        while instant is not None and instant < end:
            found.append(instant)
            if len(found) > MAX_BACKFILLED:
                raise Invalid(
                    f"The period has more than {MAX_BACKFILLED:,} firings.",
                    findings=[
                        Finding(path="to", message=f"makes the period longer than {MAX_BACKFILLED:,} firings")
                    ],
                    fix="Backfill shorter periods, one after another.",
                )
            instant = schedule.next(instant)
        return found

    async def _fill(self, record: TriggerRecord, instant: Instant) -> BackfilledRun:
        now = self._clock.now()
        key = schedule_key(record.id, instant)
        run = await self._runs.prepare(record, FiringContext(now, instant, key, new_id(), current_actor()))
        existing = await self._intake.start(run, RunRequested(), None, _firing(record, run, instant))
        if existing is not None:
            return BackfilledRun(instant, existing.id, created=False)
        self._count(run)
        return BackfilledRun(instant, run.id, created=True)

    def _count(self, run: NewRun) -> None:
        self._metrics.runs_started.inc()
        log.info(
            log_events.RUN_STARTED,
            run_id=run.id,
            workflow=run.workflow_name,
            correlation_id=run.correlation_id,
            trigger=run.trigger,
        )

    async def _load(self, text: bytes, name: str | None = None) -> CompiledTrigger:
        now = self._clock.now()

        def load() -> tuple[CompiledTrigger, TriggerDocument]:
            document = TriggerDocument(text, "body")
            return load_trigger(document, now), document

        compiled, document = await self._work.run(load)
        definition = compiled.definition
        if name is not None and definition.name != name:
            document.error(("name",), f"'{definition.name}' is not the name in the address, '{name}'")
        saved = await self._store.workflows.get(definition.workflow, definition.version)
        if saved is None:
            which = "" if definition.version is None else f" with version {definition.version}"
            document.error(
                ("workflow",), f"unknown workflow '{definition.workflow}'{which}; save the workflow first"
            )
        elif compiled.constant_input is not None:
            workflow = await self._workflows.compiled(saved.workflow_id, saved.version)
            for finding in workflow.check_input(compiled.constant_input[0]):
                where = f"{finding.path}: " if finding.path else ""
                document.error(
                    ("input",), f"does not match the workflow's input schema: {where}{finding.message}"
                )
        ends = definition.run
        if ends is not None and await self._store.workflows.get(ends.workflow, None) is None:
            document.error(
                ("run", "workflow"), f"unknown workflow '{ends.workflow}'; save the workflow first"
            )
        document.check()
        return compiled


def _new_record(compiled: CompiledTrigger, now: Instant) -> TriggerRecord:
    return TriggerRecord(
        id=new_id(),
        name=compiled.definition.name,
        definition=canonical_form(compiled.definition),
        version=1,
        created_at=now,
        updated_at=now,
    )


def _scheduled(
    record: TriggerRecord, compiled: CompiledTrigger, now: Instant, *, expected: Instant | None = None
) -> TriggerRecord:
    """With its next firing; `expected`: the one that it had."""
    schedule = compiled.schedule
    awaits_runs = schedule is not None and schedule.overlap == "queue"
    if schedule is None or not compiled.definition.enabled:
        return msgspec.structs.replace(record, scheduled_at=None, due=None, awaits_runs=awaits_runs)
    following = schedule.next(now) if expected is None else expected
    due = None if following is None else schedule.due(record.id, following)
    # Some of its firings may be queued: an executor looks at once.
    return msgspec.structs.replace(
        record, scheduled_at=following, due=now if awaits_runs else due, awaits_runs=awaits_runs
    )


async def _drop_queued(tx: Transaction, record: TriggerRecord) -> None:
    queued = await tx.triggers.queued_firings([record.id], each=MAX_BACKFILLED)
    reason = "The trigger was changed and no longer queues firings."
    dropped = [
        msgspec.structs.replace(firing, outcome="skipped", reason=reason)
        for firing in queued.get(record.id, ())
    ]
    if dropped:
        await tx.triggers.put_firings(dropped)


def _firing(record: TriggerRecord, run: NewRun, scheduled_at: Instant | None) -> Firing:
    return Firing(
        id=new_id(),
        trigger_id=record.id,
        at=run.created_at,
        outcome="started",
        scheduled_at=scheduled_at,
        run_id=run.id,
        reason=None,
    )


def _unknown(name: str) -> NotFound:
    return NotFound(f"There is no trigger {name!r}.", fix=_LIST_THEM)
