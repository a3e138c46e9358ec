"""How a step finds its agent, in the JSON Schema of the language."""

from __future__ import annotations

from trunkline.durations import DURATION_PATTERN
from trunkline.jsontypes import Json, JsonObject
from trunkline.workflow.routing.keys import (
    DEFAULT_HEDGED_CALLS,
    MAX_ALLOWED,
    MAX_HEDGED_CALLS,
    MAX_NAME,
    MAX_WORD,
    MAX_WORDS,
    SELECTS,
    SKILL_ONLY_KEYS,
)

_EXPRESSION = r"\$\{"


def agent_property() -> JsonObject:
    return {
        "type": "string",
        "maxLength": MAX_NAME,
        "description": "The name under which the agent is registered, or an expression for it. An expression needs "
        "'allow'.",
    }


def routing_properties() -> dict[str, Json]:
    word: JsonObject = {"type": "string", "minLength": 1, "maxLength": MAX_WORD}
    words: JsonObject = {"type": "array", "maxItems": MAX_WORDS, "items": word}
    return {
        "allow": {
            "description": "Which agents an expression in 'agent' may name: a list, or all agents with a tag.",
            "examples": [["Writer", "Editor"], {"tag": "research"}],
            "oneOf": [
                {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MAX_ALLOWED,
                    "items": {"type": "string", "minLength": 1, "maxLength": MAX_NAME},
                },
                {
                    "type": "object",
                    "required": ["tag"],
                    "additionalProperties": False,
                    "properties": {"tag": word},
                },
            ],
        },
        "skill": {
            **word,
            "description": "Calls one of the agents that offer this skill, instead of 'agent'.",
            "examples": ["translate"],
        },
        "tags": {**words, "description": "Tags that the agent must have, in addition to the skill."},
        "input_modes": {
            **words,
            "description": "Media types that the agent must accept.",
            "examples": [["text/plain", "image/png"]],
        },
        "select": {
            "enum": [*SELECTS],
            "default": SELECTS[0],
            "description": "Which of several agents is called: the first by name, each in turn, the one with the "
            "fewest calls, the one with the lowest 'cost', or the one that answered fastest in the last 15 minutes.",
        },
        "repeatable": {
            "type": "boolean",
            "default": False,
            "description": "Whether two agents may do the work. If so, another agent is called also when it is unknown "
            "whether the first one has received the call.",
        },
        "hedge": {
            "type": "object",
            "description": "Calls another agent in addition when the first one is slow. The first good answer counts. "
            "Only agents with 'repeatable' take part, unless the step is 'repeatable'.",
            "examples": [{"after": "5s", "max": 2}],
            "required": ["after"],
            "additionalProperties": False,
            "properties": {
                "after": {
                    "type": "string",
                    "pattern": DURATION_PATTERN,
                    "description": "How long a call may take before another agent is called.",
                },
                "max": {
                    "type": "integer",
                    "minimum": 2,
                    "maximum": MAX_HEDGED_CALLS,
                    "default": DEFAULT_HEDGED_CALLS,
                    "description": "Maximum number of calls at the same time.",
                },
            },
        },
    }


def call_kinds() -> JsonObject:
    """What a step that calls an agent needs."""
    return {
        "if": {"required": ["skill"]},
        "then": {
            "properties": {"agent": {"const": ""}, "allow": False, "version": False, "output": False},
            "if": {
                "anyOf": [
                    {"required": ["hedge"]},
                    {"properties": {"repeatable": {"const": True}}, "required": ["repeatable"]},
                ]
            },
            "then": {"properties": {"delivery": {"not": {"const": "at_most_once"}}}},
        },
        "else": {
            "required": ["agent"],
            "properties": {
                "agent": {"minLength": 1},
                "version": False,
                "output": False,
                **dict.fromkeys(SKILL_ONLY_KEYS, False),
            },
            "if": {"properties": {"agent": {"pattern": _EXPRESSION}}},
            "then": {"required": ["allow"]},
            "else": {"properties": {"allow": False}},
        },
    }
