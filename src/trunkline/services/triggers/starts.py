"""
What a trigger starts: its expressions become a run of its workflow.

An executor that fires by the schedule or for an event, and a service that fires for a person, get the run from here.
They insert it in their own transaction, together with the firing. `StartedRuns` counts and logs what a turn of the
commit loop has started.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Mapping
from typing import NamedTuple, TypeVar

import structlog

from trunkline.clock import Instant, rfc3339
from trunkline.errors import Invalid, NotFound, Unavailable
from trunkline.id_generation import new_id, new_run_id
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject, encode, is_too_deep
from trunkline.messages import TraceContext
from trunkline.services.migration.routing_table import RoutingTable
from trunkline.services.runs.labels import initial_labels
from trunkline.services.runs.queued_starts import start_behind_gate, start_behind_workflow_gate
from trunkline.services.workflows import Workflows
from trunkline.stores.base import NewRun, WorkflowVersion
from trunkline.stores.port.automation.triggers import Firing, FiringOutcome, QueuedStart, TriggerRecord
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.triggers import CompiledTrigger, compile_trigger, definition_from_canonical
from trunkline.workflow import CompiledWorkflow, ExpressionError, Template
from trunkline.workflow.validation_report import ValidationReport

T = TypeVar("T")

log = structlog.stdlib.get_logger()

# A compiled trigger takes some kilobytes.
_MAX_COMPILED = 1_000
_LONGEST_REASON = 1_000


class FiringContext(NamedTuple):
    """Why a trigger fires now."""

    fired_at: Instant
    scheduled_at: Instant | None
    # A run that was started for the same key before is not started again.
    key: str | None
    correlation_id: str
    started_by: str | None
    trace: TraceContext | None = None
    # Of a webhook.
    request: JsonObject | None = None
    # That has arrived.
    event: JsonObject | None = None
    # That has ended.
    run: JsonObject | None = None
    # How many runs led to this one.
    depth: int = 0

    def scope(self, trigger: str) -> Mapping[str, Json]:
        """What the expressions of the trigger can read."""
        about: JsonObject = {
            "name": trigger,
            "fired_at": rfc3339(self.fired_at),
            "scheduled_at": None if self.scheduled_at is None else rfc3339(self.scheduled_at),
        }
        return {"trigger": about, "request": self.request, "event": self.event, "run": self.run}


def schedule_key(trigger_id: str, scheduled_at: Instant) -> str:
    """The idempotency key of a scheduled run: the instant is started once, by a schedule or a backfill."""
    return f"trigger/{trigger_id}/{rfc3339(scheduled_at)}"


def new_firing(
    trigger_id: str,
    at: Instant,
    outcome: FiringOutcome,
    *,
    scheduled_at: Instant | None = None,
    run_id: RunId | None = None,
    reason: str | None = None,
) -> Firing:
    return Firing(
        id=new_id(),
        trigger_id=trigger_id,
        at=at,
        outcome=outcome,
        scheduled_at=scheduled_at,
        run_id=run_id,
        reason=None if reason is None else reason[:_LONGEST_REASON],
    )


async def prepared_or_reason(trigger: str, prepare: Awaitable[T]) -> T | str:
    """What was prepared, or the reason of a failed firing. Raises `Unavailable`, after which the turn is repeated."""
    try:
        return await prepare
    except (Invalid, NotFound) as exc:
        log.warning(log_events.TRIGGER_FAILED, trigger=trigger, error=exc.message)
        return exc.message
    except Unavailable:
        raise
    except Exception as exc:
        # It would fail again, and keep the runs of everyone else from going on.
        log.exception(log_events.TRIGGER_FAILED, trigger=trigger)
        return f"{type(exc).__name__}; see the log"


class StartedRuns:
    """The runs that one turn of the commit loop starts. They are counted and logged when the turn is committed."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.runs: list[NewRun] = []

    def clear(self) -> None:
        self.runs = []

    def committed(self) -> None:
        for run in self.runs:
            self._metrics.runs_started.inc()
            log.info(
                log_events.RUN_STARTED,
                run_id=run.id,
                workflow=run.workflow_name,
                correlation_id=run.correlation_id,
                trigger=run.trigger,
            )
        self.clear()


class TriggeredRuns:
    def __init__(self, workflows: Workflows, routing: RoutingTable) -> None:
        self._workflows = workflows
        self._routing = routing
        self._compiled: OrderedDict[tuple[str, int], CompiledTrigger] = OrderedDict()

    def compiled(self, record: TriggerRecord) -> CompiledTrigger:
        """Raises `Invalid` for a definition that this version of the program cannot use."""
        key = (record.id, record.version)
        trigger = self._compiled.get(key)
        if trigger is None:
            report = ValidationReport()
            trigger = compile_trigger(definition_from_canonical(record.definition), report)
            if report.errors:
                raise Invalid(f"The trigger {record.name} cannot be used: {report.errors[0].message}.")
            self._compiled[key] = trigger
            if len(self._compiled) > _MAX_COMPILED:
                self._compiled.popitem(last=False)
        return trigger

    async def prepare(
        self, record: TriggerRecord, context: FiringContext, *, run_input: tuple[Json] | None = None
    ) -> NewRun:
        """
        The run, not inserted yet. Raises `Invalid` or `NotFound` if there can be none.

        `run_input`: in place of what the trigger's template makes.
        """
        trigger = self.compiled(record)
        definition = trigger.definition
        value = (
            _evaluated(trigger.input, record.name, context.scope(record.name))
            if run_input is None
            else run_input[0]
        )
        saved = await self._workflows.get(definition.workflow, definition.version)
        workflow = await self._workflows.compiled(saved.workflow_id, saved.version)
        findings = [] if is_too_deep(value) else workflow.check_input(value)
        if is_too_deep(value) or findings:
            what = f"{findings[0].path}: {findings[0].message}" if findings else "it is nested too deeply"
            raise Invalid(
                f"The input that the trigger {record.name} creates does not match the input schema of workflow "
                f"{saved.name}: {what}.",
                findings=findings,
                fix=f"Change the input of the trigger, or the schema: trunkline workflows show {saved.name}.",
            )
        content = encode(value)
        run_id = new_run_id()
        return NewRun(
            id=run_id,
            workflow_id=saved.workflow_id,
            workflow_name=saved.name,
            workflow_version=saved.version,
            input=content,
            correlation_id=context.correlation_id,
            created_at=context.fired_at,
            idempotency_key=context.key,
            request_digest=None if context.key is None else hashlib.sha256(content).digest(),
            routing_version=await self._routing.current_version(),
            trace=context.trace,
            started_by=context.started_by,
            trigger=record.name,
            depth=context.depth,
            start=_queued_start(record, trigger, saved, workflow, value, context.fired_at),
            labels=initial_labels(workflow, run_id, content, context.correlation_id),
        )


def _queued_start(
    record: TriggerRecord,
    trigger: CompiledTrigger,
    saved: WorkflowVersion,
    workflow: CompiledWorkflow,
    run_input: Json,
    now: Instant,
) -> QueuedStart | None:
    """Limits of the trigger replace those of the workflow; its priority alone does not."""
    flow = trigger.definition.flow
    if flow is not None and flow.holds_back:
        return start_behind_gate(record.id, f"trigger {record.name}", flow, trigger.flow_key, run_input, now)
    priority = None if flow is None else flow.priority
    return start_behind_workflow_gate(saved.workflow_id, workflow, run_input, now, priority)


def _evaluated(template: Template, name: str, scope: Mapping[str, Json]) -> Json:
    try:
        return template.evaluate(scope.__getitem__)
    except ExpressionError as exc:
        raise Invalid(
            f"The input of the trigger {name} cannot be evaluated: {exc}.",
            fix="Correct the expression in the trigger.",
        ) from exc
