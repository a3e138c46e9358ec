"""
The workflow language as a JSON Schema, for editors: completion, descriptions, and red lines while typing.

It knows the shape only; whether steps exist, expressions compile and the graph has an order is checked at
save.
"""

from __future__ import annotations

from trunkline.jsontypes import JsonObject
from trunkline.retry_policy import MAX_ATTEMPTS
from trunkline.workflow.definition import (
    AFTER_FAILURE,
    AFTER_ITEM,
    BACKOFFS,
    CONTEXTS,
    DEFAULT_ITEMS_AT_ONCE,
    DELIVERIES,
    EACH_MODES,
    JOIN_POLICIES,
)
from trunkline.workflow.durations import DURATION_PATTERN
from trunkline.workflow.expressions import KEYWORDS
from trunkline.workflow.secret_references import SECRET_KEY, SECRET_NAME_PATTERN
from trunkline.workflow.validate import (
    AGENT_ONLY_KEYS,
    DOTS,
    MAX_DESCRIPTION,
    MAX_ITEMS_AT_ONCE,
    MAX_JOINED,
    MAX_NAME,
    MAX_PARALLEL,
    MAX_VERSION,
    STEP_NAME_PATTERN,
)


def workflow_json_schema() -> JsonObject:
    """The schema of a workflow file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Trunkline workflow",
        "description": "A graph of steps, each of them one call of an agent or one run of another workflow.",
        "type": "object",
        "required": ["name", "steps"],
        "additionalProperties": False,
        "properties": {
            "$schema": {"type": "string", "description": "For editors; Trunkline does not read it."},
            "name": {
                **_text(MAX_NAME, "The workflow's name. Saving under the same name makes a new version."),
                "not": {"enum": [*DOTS]},
            },
            "description": _text(MAX_DESCRIPTION, "What the workflow is for."),
            "input": {
                "type": "object",
                "description": "A JSON Schema. A run's input is checked against it before the run starts.",
            },
            "steps": {
                "type": "object",
                "description": "The steps by name. They run in parallel where nothing makes one wait.",
                "minProperties": 1,
                "propertyNames": {
                    "pattern": STEP_NAME_PATTERN,
                    "not": {"enum": [*sorted(KEYWORDS)]},
                },
                "additionalProperties": {"$ref": "#/$defs/step"},
            },
            "output": {
                "description": "What a run returns, with ${ … } in its strings. "
                "Left out: the outputs of the steps that no other step needs.",
            },
            "deadline": _duration("How long a run may take as a whole."),
            "max_parallel": _integer(1, MAX_PARALLEL, "How many steps of a run may be called at once."),
        },
        "$defs": {
            "step": _step(),
            "retry": _retry(),
            "duration": _DURATION,
            "template": _template(),
            "secret": _SECRET,
        },
    }


_DURATION: JsonObject = {
    "type": "string",
    "pattern": DURATION_PATTERN,
    "examples": ["100ms", "25s", "5m", "1h", "2d"],
}


_SECRET: JsonObject = {
    "type": "object",
    "description": "A secret, by its name: it is put in when the agent is called, and shown nowhere.",
    "required": [SECRET_KEY],
    "additionalProperties": False,
    "properties": {SECRET_KEY: {"type": "string", "pattern": SECRET_NAME_PATTERN}},
}


def _template() -> JsonObject:
    """Any JSON; an object with `$secret` is a secret and nothing else."""
    inside: JsonObject = {"$ref": "#/$defs/template"}
    return {
        "if": {"type": "object", "required": [SECRET_KEY]},
        "then": {"$ref": "#/$defs/secret"},
        "else": {"additionalProperties": inside, "items": inside},
    }


def _step() -> JsonObject:
    step_name: JsonObject = {"type": "string", "pattern": STEP_NAME_PATTERN}
    return {
        "type": "object",
        "description": "One call of an agent, or one run of another workflow.",
        "if": {"required": ["workflow"]},
        "then": {"properties": {"agent": {"const": ""}, **dict.fromkeys(AGENT_ONLY_KEYS, False)}},
        "else": {"required": ["agent"], "properties": {"agent": {"minLength": 1}, "version": False}},
        "additionalProperties": False,
        "properties": {
            "agent": {
                "type": "string",
                "maxLength": MAX_NAME,
                "description": "The agent's name, as it is registered.",
            },
            "workflow": _text(MAX_NAME, "Instead of an agent: the workflow that the step is a run of."),
            "version": _integer(
                1, MAX_VERSION, "Of that workflow; left out: the latest there is when the step begins."
            ),
            "needs": {
                "type": "array",
                "items": step_name,
                "description": "Steps that must be done first. What the expressions read is added by itself.",
            },
            "join": _join(),
            "for_each": _for_each(),
            "when": {
                "type": ["string", "boolean"],
                "description": "CEL, with or without ${ }. When it is false the step is skipped.",
                "examples": ["steps.research.output.data.score < 0.8"],
            },
            "input": {
                "$ref": "#/$defs/template",
                "description": "What the agent gets, with ${ … } in strings. Left out: the run's input.",
                "examples": [
                    {"text": "Write about ${ input.topic }"},
                    {"text": "${ input.text }", "bot_token": {SECRET_KEY: "slack-bot"}},
                ],
            },
            "retry": {"$ref": "#/$defs/retry"},
            "timeout": _duration("How long one attempt may take; overrides the agent's."),
            "deadline": _duration("How long the step may take, all attempts and pauses together."),
            "reply_timeout": _duration(
                "How long a question of the agent may wait for an answer before the step fails. "
                "Left out: as the server's settings say."
            ),
            "on_error": {
                "description": "What follows when the step has failed, after its retries: the run fails, "
                "goes on with a null output, or goes on at another step.",
                "default": "fail",
                "oneOf": [
                    {"enum": [*AFTER_FAILURE]},
                    {
                        "type": "object",
                        "required": ["goto"],
                        "additionalProperties": False,
                        "properties": {"goto": step_name},
                    },
                ],
            },
            "delivery": _choice(
                DELIVERIES,
                "at_most_once: when the answer is lost the agent is not called again, and a person decides.",
            ),
            "context": _choice(
                CONTEXTS,
                "Which conversation with the agent the call belongs to: one per run, one per step, or none.",
            ),
        },
    }


def _join() -> JsonObject:
    cancel_rest: JsonObject = {
        "type": "boolean",
        "default": True,
        "description": "Stop the branches that have not completed by then.",
    }
    return {
        "description": "How many of the steps in 'needs' have to complete before the step begins.",
        "default": "all",
        "oneOf": [
            {"enum": [*JOIN_POLICIES]},
            {
                "type": "object",
                "required": ["at_least"],
                "additionalProperties": False,
                "properties": {
                    "at_least": _integer(1, MAX_JOINED, "So many of them."),
                    "cancel_rest": cancel_rest,
                },
            },
            {
                "type": "object",
                "required": ["policy"],
                "additionalProperties": False,
                "properties": {"policy": {"enum": [*JOIN_POLICIES]}, "cancel_rest": cancel_rest},
            },
        ],
    }


def _for_each() -> JsonObject:
    items: JsonObject = {
        "type": ["string", "array"],
        "description": "An expression that gives a list, or a list with expressions in it.",
        "examples": ["${ input.items }"],
    }
    return {
        "description": "Calls the agent once for each item of a list; 'item' and 'index' can be read in 'input' "
        "and 'when'. The output is the list of the outputs, in the order of the items.",
        "oneOf": [
            items,
            {
                "type": "object",
                "required": ["items"],
                "additionalProperties": False,
                "properties": {
                    "items": items,
                    "mode": _choice(EACH_MODES, "All at once, or one after the other."),
                    "limit": {
                        **_integer(1, MAX_ITEMS_AT_ONCE, "How many items are worked on at once."),
                        "default": DEFAULT_ITEMS_AT_ONCE,
                    },
                    "on_error": _choice(
                        AFTER_ITEM,
                        "When an item has failed: the step fails, its place in the output is null, or every "
                        "place in the output says how its item ended.",
                    ),
                },
            },
        ],
    }


def _retry() -> JsonObject:
    return {
        "type": "object",
        "description": "When and how often a failed call is made again; overrides the agent's.",
        "additionalProperties": False,
        "properties": {
            "max_attempts": {**_integer(1, MAX_ATTEMPTS, "All calls counted, the first too."), "default": 3},
            "backoff": {
                **_choice(BACKOFFS, "How the delay grows from attempt to attempt."),
                "default": "exponential",
            },
            "first_delay": {**_duration("The delay before the second attempt."), "default": "1s"},
            "max_delay": {**_duration("No delay is longer."), "default": "1m"},
            "jitter": {
                "type": "boolean",
                "default": True,
                "description": "Vary the delay.",
            },
            "on": {
                "type": "array",
                "default": ["no_answer", 408, 425, 429, "5xx"],
                "description": "What is worth another attempt: no_answer, any, HTTP statuses and classes "
                "(429, 5xx), JSON-RPC codes (below 0), error codes.",
                "items": {
                    "oneOf": [
                        {"type": "integer", "maximum": -1},
                        {"type": "integer", "minimum": 100, "maximum": 599},
                        {"type": "string", "pattern": "^([1-5]xx|-?[0-9]{1,6}|[a-z][a-z0-9_]*)$"},
                    ]
                },
            },
        },
    }


def _text(most: int, description: str) -> JsonObject:
    return {"type": "string", "minLength": 1, "maxLength": most, "description": description}


def _integer(least: int, most: int, description: str) -> JsonObject:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


def _choice(options: tuple[str, ...], description: str) -> JsonObject:
    return {"enum": [*options], "default": options[0], "description": description}


def _duration(description: str) -> JsonObject:
    return {"$ref": "#/$defs/duration", "description": description}
