"""Turns a text into a validated trigger, with its schedule and its expressions compiled."""

from __future__ import annotations

from dataclasses import dataclass

from trunkline.clock import Instant
from trunkline.errors import Finding
from trunkline.jsontypes import Json
from trunkline.triggers.definition import ScheduleDefinition, TriggerDefinition
from trunkline.triggers.schedule import Schedule
from trunkline.triggers.validate import read_schedule, read_trigger
from trunkline.workflow.document.locations import Path
from trunkline.workflow.document.parsing import ParsedDocument, locate_values, read_document
from trunkline.workflow.expressions import (
    CelCompiler,
    Condition,
    Template,
    TemplateCompiler,
    strip_delimiters,
)
from trunkline.workflow.flow_control.reader import compile_flow_key
from trunkline.workflow.validation_report import ValidationReport, invalid_error, to_findings

# A trigger is a page of text, with an input that is not larger than a run's.
MAX_BYTES = 1024 * 1024


# What the expressions of a trigger can read, by what starts it.
_VARIABLES = {
    "schedule": ("trigger",),
    "webhook": ("trigger", "request"),
    "event": ("trigger", "event"),
    "run": ("trigger", "run"),
}


@dataclass(frozen=True, slots=True)
class CompiledTrigger:
    definition: TriggerDefinition
    input: Template
    schedule: Schedule | None
    filter: Condition | None = None
    idempotency_key: Template | None = None
    # Of its gate.
    flow_key: Template | None = None

    @property
    def constant_input(self) -> tuple[Json] | None:
        """The input of every run, if no expression makes it."""
        return None if self.input.reads else (self.definition.input,)


def compile_trigger(definition: TriggerDefinition, report: ValidationReport) -> CompiledTrigger:
    """What does not compile is reported."""
    source, filter_, idempotency_key = _source_of(definition)
    compiler = TemplateCompiler(CelCompiler((), _VARIABLES[source]), report)
    template, _ = compiler.template(definition.input, ("input",))
    schedule = None if definition.schedule is None else Schedule(definition.schedule)
    condition = key = None
    if filter_ is not None:
        condition, _ = compiler.condition(strip_delimiters(filter_), (source, "filter"))
    if idempotency_key is not None:
        key, _ = compiler.template(idempotency_key, (source, "idempotency_key"))
    flow_key = compile_flow_key(definition.flow, report)
    return CompiledTrigger(definition, template, schedule, condition, key, flow_key)


def _source_of(definition: TriggerDefinition) -> tuple[str, str | None, str | None]:
    """What starts it, with its filter and its idempotency key."""
    if definition.webhook is not None:
        return "webhook", definition.webhook.filter, definition.webhook.idempotency_key
    if definition.event is not None:
        return "event", definition.event.filter, definition.event.idempotency_key
    if definition.run is not None:
        return "run", definition.run.filter, None
    return "schedule", None, None


class TriggerDocument:
    """A text that has been read, and the findings that come up about it."""

    def __init__(self, text: str | bytes, source: str) -> None:
        self._source = source
        self.report = ValidationReport()
        if len(text) > MAX_BYTES:
            finding = Finding(path="", message=f"a trigger must have at most {MAX_BYTES:,} bytes")
            raise invalid_error(source, [finding], 1)
        self._document: ParsedDocument = read_document(text, source)
        self.value = self._document.value

    def error(self, path: Path, message: str) -> None:
        self.report.error(path, message)

    def check(self) -> None:
        """Raises `Invalid` with all findings, each with its place."""
        document, errors = self._document, self.report.errors
        places = locate_values(document.text) if errors else {}
        found = [*document.problems, *to_findings(errors, document.text, places)]
        if found:
            found.sort(key=lambda finding: (finding.line or 0, finding.column or 0))
            raise invalid_error(self._source, found, len(document.problems) + len(errors))


def load_trigger(document: TriggerDocument, now: Instant) -> CompiledTrigger:
    """The trigger of a document; raises `Invalid`."""
    definition = read_trigger(document.value, document.report)
    compiled = None if definition is None else compile_trigger(definition, document.report)
    if definition is not None and definition.schedule is not None:
        _check_cron_occurs(definition.schedule, ("schedule", "cron"), document, now)
    document.check()
    if compiled is None:
        raise AssertionError("a trigger without findings has a definition")
    return compiled


def load_schedule(document: TriggerDocument, now: Instant) -> Schedule:
    """The schedule of a document that has nothing else in it; raises `Invalid`."""
    definition = read_schedule(document.value, document.report)
    if definition is not None:
        _check_cron_occurs(definition, ("cron",), document, now)
    document.check()
    if definition is None:
        raise AssertionError("a schedule without findings has a definition")
    return Schedule(definition)


def _check_cron_occurs(
    definition: ScheduleDefinition, path: Path, document: TriggerDocument, now: Instant
) -> None:
    if definition.cron is None:
        return
    if Schedule(ScheduleDefinition(cron=definition.cron, timezone=definition.timezone)).next(now) is None:
        document.error(path, f"'{definition.cron}' names no day of the next 50 years; it would never fire")
