"""Flow control as a part of a JSON Schema, for editors."""

from __future__ import annotations

from trunkline.durations import DURATION_PATTERN
from trunkline.jsontypes import JsonObject
from trunkline.workflow.flow_control.definition import ON_LIMITS
from trunkline.workflow.flow_control.reader import MAX_EXPRESSION, MAX_LIMIT, MAX_PRIORITY

_KEY: JsonObject = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_EXPRESSION,
    "description": "An expression over 'input'. Runs with the same value count together. Default: all runs do.",
    "examples": ["input.customer"],
}


def flow_properties() -> JsonObject:
    """The keys by which runs are held back."""
    return {
        "concurrency": {
            "type": "object",
            "description": "How many runs are active at the same time.",
            "required": ["limit"],
            "additionalProperties": False,
            "properties": {
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_LIMIT,
                    "description": "Maximum number of active runs with the same key.",
                },
                "key": _KEY,
                "on_limit": {
                    "enum": [*ON_LIMITS],
                    "default": "queue",
                    "description": "What happens to a run above the limit: it waits, it is cancelled, or the oldest "
                    "run is cancelled for it.",
                },
            },
        },
        "throttle": {
            "type": "string",
            "pattern": "^[0-9]{1,7}/[smh]$",
            "description": "How many runs start per second, minute or hour. Any further run waits.",
            "examples": ["10/m"],
        },
        "debounce": {
            "description": "A run starts when no other run with the same key has arrived for this long. Only the last "
            "run starts.",
            "examples": ["30s", "30s by input.customer"],
            "oneOf": [
                {"type": "string", "minLength": 1},
                {
                    "type": "object",
                    "required": ["wait"],
                    "additionalProperties": False,
                    "properties": {"wait": {"type": "string", "pattern": DURATION_PATTERN}, "key": _KEY},
                },
            ],
        },
        "priority": {
            "type": "integer",
            "minimum": -MAX_PRIORITY,
            "maximum": MAX_PRIORITY,
            "default": 0,
            "description": "Of the runs that wait, those with the highest priority start first.",
        },
    }
