"""The actions of a step in the JSON Schema of the language, for editors."""

from __future__ import annotations

from trunkline.durations import DURATION_PATTERN
from trunkline.jsontypes import Json, JsonObject
from trunkline.workflow.actions.ask import (
    MAX_OPTION,
    MAX_OPTIONS,
    MAX_REQUIRED,
    MAX_TEXT,
    MAX_TITLE,
)
from trunkline.workflow.actions.definitions import AFTER_TIMEOUT
from trunkline.workflow.actions.reader import (
    CALL_ONLY_KEYS,
    MAX_EVENT_TYPE,
    MAX_EVENT_TYPES,
    MAX_EVENTS,
    MAX_MATCH,
    MAX_TIME,
    MAX_VALUES,
)
from trunkline.workflow.actions.task_rules import MAX_ASSIGNEE, MAX_ASSIGNEES, MAX_ESCALATIONS

# Text with an expression in it: what it yields is checked when the step begins.
EXPRESSION_PATTERN = r"\$\{"


_DURATION: JsonObject = {
    "type": "string",
    "anyOf": [{"pattern": DURATION_PATTERN}, {"pattern": EXPRESSION_PATTERN}],
}
_EVENT_TYPE: JsonObject = {"type": "string", "minLength": 1, "maxLength": MAX_EVENT_TYPE}


def _people(description: str) -> JsonObject:
    return {
        "description": description,
        "oneOf": [
            {"type": "string", "pattern": EXPRESSION_PATTERN},
            {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_ASSIGNEES,
                "items": {"type": "string", "minLength": 1, "maxLength": MAX_ASSIGNEE},
            },
        ],
    }


def _rules() -> JsonObject:
    return {
        "assignees": _people("The people or groups who should answer."),
        "due": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_TIME,
            "description": "A duration, or a time in ISO 8601 with a time zone. Afterwards, the task is overdue. "
            "It can still be answered.",
        },
        "escalate": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_ESCALATIONS,
            "description": "Adds assignees when the task has not been answered for some time.",
            "items": {
                "type": "object",
                "required": ["after", "to"],
                "additionalProperties": False,
                "properties": {
                    "after": {**_DURATION, "description": "The time since the task was given."},
                    "to": _people("The people or groups to add."),
                },
            },
        },
        "only_assignees": {
            "type": "boolean",
            "default": False,
            "description": "Whether only the assignees can answer.",
        },
    }


def question_rules() -> JsonObject:
    """Of a step that calls an agent."""
    return {
        "type": "object",
        "description": "Assignees, due time and escalation of the questions that the agent asks.",
        "examples": [{"assignees": ["support"], "due": "1d"}],
        "minProperties": 1,
        "dependentRequired": {"only_assignees": ["assignees"]},
        "additionalProperties": False,
        "properties": _rules(),
    }


def _ask() -> JsonObject:
    return {
        "type": "object",
        "description": "Gives people a task, and waits for their answer. The output has the keys answer, data, by, at "
        "and comment.",
        "examples": [
            {
                "title": "Approve the order of ${ input.customer }",
                "options": ["approve", "reject"],
                "assignees": ["sales"],
                "due": "1d",
                "timeout": "5d",
            }
        ],
        "required": ["title"],
        "dependentRequired": {"on_timeout": ["timeout"], "only_assignees": ["assignees"]},
        "additionalProperties": False,
        "properties": {
            "title": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_TITLE,
                "description": "What the person has to do, in one line.",
            },
            "text": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_TEXT,
                "description": "What the person has to know.",
            },
            "form": {
                "type": "object",
                "description": "A JSON Schema for the data of the answer. It cannot contain expressions.",
            },
            "options": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_OPTIONS,
                "uniqueItems": True,
                "items": {"type": "string", "minLength": 1, "maxLength": MAX_OPTION},
                "description": "The possible answers. Without it, the answer is any text, or is left out.",
            },
            **_rules(),
            "timeout": {**_DURATION, "description": "How long the step waits."},
            "on_timeout": {
                "enum": [*AFTER_TIMEOUT],
                "default": AFTER_TIMEOUT[0],
                "description": "After the timeout, the step fails with ask_timeout, or completes with null.",
            },
            "required": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_REQUIRED,
                "default": 1,
                "description": "How many people must give the first option. Any other option completes the step "
                "immediately.",
            },
            "exclude_starter": {
                "type": "boolean",
                "default": False,
                "description": "Whether the person who started the run cannot answer.",
            },
        },
    }


def without_call() -> JsonObject:
    """What a step with an action cannot have."""
    refused = ("workflow", "skill", "cache", *CALL_ONLY_KEYS)
    return {"agent": {"const": ""}, **dict.fromkeys(refused, False)}


def action_properties() -> dict[str, Json]:
    return {
        "ask": _ask(),
        "set": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": MAX_VALUES,
            "description": "Computes values without a call. Strings can contain ${ … }. The output of the step "
            "is the object of the values.",
            "examples": [{"total": "${ input.price * input.amount }"}],
        },
        "sleep": {
            "description": "Waits for a duration, or until a time in ISO 8601 with a time zone. A time in the past "
            "completes the step immediately.",
            "examples": ["2h", {"until": "${ input.send_at }"}],
            "oneOf": [
                _DURATION,
                {
                    "type": "object",
                    "required": ["until"],
                    "additionalProperties": False,
                    "properties": {"until": {"type": "string", "minLength": 1, "maxLength": MAX_TIME}},
                },
            ],
        },
        "wait_for": {
            "type": "object",
            "description": "Waits for an event, for any of several types of events, or for a signal to the run. An "
            "event counts if it arrives after the run was accepted, also before the step starts. The output is the "
            "event (type, key, data, id, at), or the list of the events with 'count'.",
            "examples": [
                {
                    "event": "payment.received",
                    "key": "${ input.order }",
                    "match": "event.data.amount >= input.amount",
                    "timeout": "3d",
                },
                {"signal": "approved"},
            ],
            "oneOf": [
                {"required": ["event"]},
                {"required": ["any"]},
                {"required": ["signal"], "properties": {"key": False}},
            ],
            "dependentRequired": {"on_timeout": ["timeout"]},
            "additionalProperties": False,
            "properties": {
                "event": {**_EVENT_TYPE, "description": "The type of the event."},
                "any": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MAX_EVENT_TYPES,
                    "items": _EVENT_TYPE,
                    "description": "The types of the events. One of them is enough.",
                },
                "signal": {**_EVENT_TYPE, "description": "The name of a signal to this run."},
                "key": {
                    "type": ["string", "integer"],
                    "minLength": 1,
                    "maxLength": MAX_TIME,
                    "description": "The key that the event must have. Without it, events with any key count.",
                },
                "match": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_MATCH,
                    "description": "A CEL condition that can read 'event'. An event for which it cannot be "
                    "evaluated does not match.",
                },
                "count": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_EVENTS,
                    "default": 1,
                    "description": "How many events complete the step.",
                },
                "timeout": {**_DURATION, "description": "How long the step waits."},
                "on_timeout": {
                    "enum": [*AFTER_TIMEOUT],
                    "default": AFTER_TIMEOUT[0],
                    "description": "After the timeout, the step fails with wait_timeout, or completes with null.",
                },
            },
        },
    }
