"""
Triggers: workflows that start by themselves. What a trigger may contain, when a schedule is due, and what it starts.

Pure: it does no I/O and reads no clock. `services/triggers` saves and fires them.
"""

from __future__ import annotations

from trunkline.triggers.definition import (
    CatchUp,
    EndStatus,
    EventDefinition,
    Overlap,
    RunEndDefinition,
    ScheduleDefinition,
    TriggerDefinition,
    WebhookDefinition,
    canonical_form,
    definition_from_canonical,
    event_topic,
    run_end_topic,
)
from trunkline.triggers.due import DueFirings, MissedSpan, take_due
from trunkline.triggers.load import (
    CompiledTrigger,
    TriggerDocument,
    compile_trigger,
    load_schedule,
    load_trigger,
)
from trunkline.triggers.schedule import Schedule

__all__ = [
    "CatchUp",
    "CompiledTrigger",
    "DueFirings",
    "EndStatus",
    "EventDefinition",
    "MissedSpan",
    "Overlap",
    "RunEndDefinition",
    "Schedule",
    "ScheduleDefinition",
    "TriggerDefinition",
    "TriggerDocument",
    "WebhookDefinition",
    "canonical_form",
    "compile_trigger",
    "definition_from_canonical",
    "event_topic",
    "load_schedule",
    "load_trigger",
    "run_end_topic",
    "take_due",
]
