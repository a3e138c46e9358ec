"""
The workflow language as a JSON Schema, for editors: completion, descriptions, and red lines while typing.

It knows the shape only; whether steps exist, expressions compile and the graph has an order is checked at
save.
"""

from __future__ import annotations

from trunkline.durations import DURATION_PATTERN
from trunkline.jsontypes import JsonObject
from trunkline.publish_options import MAX_CARD_ITEMS, MAX_CARD_TEXT
from trunkline.retry_policy import MAX_ATTEMPTS
from trunkline.workflow.actions.compensation import REFUSED_KEYS
from trunkline.workflow.actions.definitions import ACTION_KEYS
from trunkline.workflow.actions.schema import action_properties, question_rules, without_call
from trunkline.workflow.definition import (
    AFTER_FAILURE,
    AFTER_ITEM,
    AFTER_ROUNDS,
    BACKOFFS,
    CONTEXTS,
    DEFAULT_COMPENSATE_ON,
    DEFAULT_ITEMS_AT_ONCE,
    DEFAULT_REPAIRS,
    DEFAULT_ROUNDS,
    DELIVERIES,
    EACH_MODES,
    JOIN_POLICIES,
    MESSAGE_SOURCES,
    RUN_ENDS,
)
from trunkline.workflow.expressions import KEYWORDS
from trunkline.workflow.flow_control.schema import flow_properties
from trunkline.workflow.labels import LABEL_KEY_PATTERN, MAX_LABEL_EXPRESSION, MAX_LABELS
from trunkline.workflow.output_schema import MAX_REPAIRS
from trunkline.workflow.repetition import MAX_BRANCHES, MAX_ROUNDS
from trunkline.workflow.routing.cache import cache_property
from trunkline.workflow.routing.schema import agent_property, call_kinds, routing_properties
from trunkline.workflow.secret_references import SECRET_KEY, SECRET_NAME_PATTERN
from trunkline.workflow.step_graph.step_names import COMPENSATE
from trunkline.workflow.validate import (
    AGENT_ONLY_KEYS,
    BLOCK_KEYS,
    DOTS,
    MAX_DESCRIPTION,
    MAX_ITEMS_AT_ONCE,
    MAX_JOINED,
    MAX_NAME,
    MAX_PARALLEL,
    MAX_STEPS,
    MAX_VERSION,
    STEP_NAME_PATTERN,
)


def workflow_json_schema() -> JsonObject:
    """The schema of a workflow file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Trunkline workflow",
        "description": "A graph of steps. Each step calls an agent, runs another workflow, or does something itself.",
        "type": "object",
        "required": ["name", "steps"],
        "additionalProperties": False,
        "properties": {
            "$schema": {"type": "string", "description": "For editors. Trunkline ignores it."},
            "name": {
                **_text(
                    MAX_NAME,
                    "The workflow's name. Saving a definition under an existing name creates a new version.",
                ),
                "not": {"enum": [*DOTS]},
            },
            "description": _text(MAX_DESCRIPTION, "What the workflow is for."),
            "input": {
                "type": "object",
                "description": "A JSON Schema that the run input is validated against before the run starts.",
            },
            "steps": _steps("The steps by name. Steps run in parallel unless one depends on another."),
            "output": {
                "description": "The run output. Strings can contain ${ … }. Default: the outputs of the steps "
                "that no other step needs.",
            },
            "deadline": _duration("Maximum duration of a run."),
            "max_parallel": _integer(
                1, MAX_PARALLEL, "Maximum number of steps of a run that are called at the same time."
            ),
            **flow_properties(),
            "publish": _publish(),
            "labels": {
                "type": "object",
                "description": "Labels of the runs, by which they can be found. Values can contain ${ … } with "
                "'input' and 'run'. A label whose value is null is omitted.",
                "examples": [{"customer": "${ input.customer }", "team": "billing"}],
                "maxProperties": MAX_LABELS,
                "propertyNames": {"pattern": LABEL_KEY_PATTERN},
                "additionalProperties": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_LABEL_EXPRESSION,
                },
            },
            "compensate_on": {
                "type": "array",
                "items": {"enum": [*RUN_ENDS]},
                "uniqueItems": True,
                "default": [*DEFAULT_COMPENSATE_ON],
                "description": "After which ends of a run the compensations of its completed steps run.",
            },
        },
        "$defs": {
            "step": _step(),
            "retry": _retry(),
            "duration": _DURATION,
            "template": _template(),
            "secret": _SECRET,
        },
    }


def _steps(description: str) -> JsonObject:
    return {
        "type": "object",
        "description": description,
        "minProperties": 1,
        "maxProperties": MAX_STEPS,
        "propertyNames": {"pattern": STEP_NAME_PATTERN, "not": {"enum": [*sorted(KEYWORDS)]}},
        "additionalProperties": {"$ref": "#/$defs/step"},
    }


_DURATION: JsonObject = {
    "type": "string",
    "pattern": DURATION_PATTERN,
    "examples": ["100ms", "25s", "5m", "1h", "2d"],
}


_SECRET: JsonObject = {
    "type": "object",
    "description": "The name of a secret. Its value is inserted when the agent is called, and is never shown.",
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
        "description": "A call to an agent, a run of another workflow, a block of steps, or an action.",
        **_kinds(),
        "additionalProperties": False,
        "properties": {
            "agent": agent_property(),
            **routing_properties(),
            "workflow": _text(MAX_NAME, "The workflow that the step runs, instead of an agent."),
            "version": _integer(
                1,
                MAX_VERSION,
                "The version of that workflow. Default: the latest version when the step starts.",
            ),
            "steps": _steps(
                "A block: steps inside this step. They can read the steps outside. Keys such as 'for_each', 'when' and "
                "'retry' apply to the block as a whole."
            ),
            "output": {
                "description": "The output of a block. Strings can contain ${ … } and read the steps of the block. "
                "Default: the outputs of the steps that no other step of the block needs.",
            },
            **action_properties(),
            "switch": _switch(),
            "needs": {
                "type": "array",
                "items": step_name,
                "description": "Steps that must finish first. Steps that expressions read are added automatically.",
            },
            "join": _join(),
            "for_each": _for_each(),
            "repeat": _repeat(),
            "cache": cache_property(),
            "when": {
                "type": ["string", "boolean"],
                "description": "A CEL condition, with or without ${ }. If it is false, the step is skipped.",
                "examples": ["steps.research.output.data.score < 0.8"],
            },
            "input": {
                "$ref": "#/$defs/template",
                "description": "The input for the agent. Strings can contain ${ … }. Default: the run input.",
                "examples": [
                    {"text": "Write about ${ input.topic }"},
                    {"text": "${ input.text }", "bot_token": {SECRET_KEY: "slack-bot"}},
                ],
            },
            "retry": {"$ref": "#/$defs/retry"},
            "timeout": _duration("Timeout of one attempt. Overrides the agent's timeout."),
            "deadline": _duration("Maximum duration of the step, including all attempts and delays."),
            "reply_timeout": _duration(
                "How long a question of the agent waits for a reply before the step fails. "
                "Default: the server's setting."
            ),
            "questions": question_rules(),
            "on_error": {
                "description": "What happens when the step fails after its retries: the run fails, continues with "
                "a null output, or continues at another step.",
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
                "at_most_once: if the response is lost, the agent is not called again and a person decides.",
            ),
            "context": _choice(
                CONTEXTS,
                "Which conversation with the agent the call belongs to: one per run, one per step, none, or the "
                "conversation of the A2A caller that started the run.",
            ),
            "message": _choice(
                MESSAGE_SOURCES,
                "caller: the agent receives the A2A message that started the run, unchanged, instead of an input. "
                "Without such a message, it receives the run input.",
            ),
            **_output_check(),
            COMPENSATE: {
                "description": "A step that undoes this one if the run fails or is cancelled (see 'compensate_on'). "
                "Its expressions can also read failure.code, failure.message and failure.step.",
                "allOf": [
                    {"$ref": "#/$defs/step"},
                    {"properties": dict.fromkeys(REFUSED_KEYS, False)},
                ],
                "examples": [{"agent": "Flights", "input": {"cancel": "${ steps.flight.output.data.id }"}}],
            },
        },
    }


def _output_check() -> JsonObject:
    return {
        "output_schema": {
            "type": "object",
            "description": "A JSON Schema that output.data must match, or {$ref: schemas/NAME} for a saved schema. "
            "The agent is asked to correct an output that does not match.",
            "examples": [{"type": "object", "required": ["score"]}],
        },
        "repair": _integer(
            0,
            MAX_REPAIRS,
            "How many times the agent is asked to correct its output. "
            f"Default: {DEFAULT_REPAIRS}, or 0 with delivery: at_most_once.",
        ),
    }


def _kinds() -> JsonObject:
    """What goes with what a step does."""
    return {
        "if": {"required": ["workflow"]},
        "then": {
            "properties": {
                "agent": {"const": ""},
                **dict.fromkeys(("skill", *AGENT_ONLY_KEYS, *BLOCK_KEYS, *ACTION_KEYS), False),
            }
        },
        "else": {
            "if": {"anyOf": [{"required": ["steps"]}, {"required": ["switch"]}]},
            "then": {
                "oneOf": [{"required": ["steps"]}, {"required": ["switch"]}],
                "dependentSchemas": {"output": {"required": ["steps"]}},
                "properties": {**without_call(), **dict.fromkeys(ACTION_KEYS, False)},
            },
            "else": {
                "if": {"anyOf": [{"required": [key]} for key in ACTION_KEYS]},
                "then": {
                    "oneOf": [{"required": [key]} for key in ACTION_KEYS],
                    "properties": {**without_call(), "output": False},
                },
                "else": call_kinds(),
            },
        },
    }


def _publish() -> JsonObject:
    words: JsonObject = {
        "type": "array",
        "maxItems": MAX_CARD_ITEMS,
        "items": {"type": "string", "minLength": 1, "maxLength": MAX_NAME},
    }
    url: JsonObject = {"type": "string", "pattern": "^https?://[^\\s]+$", "maxLength": 2_000}
    return {
        "description": "Publishes the workflow as an A2A agent. true uses the defaults.",
        "oneOf": [
            {"type": "boolean"},
            {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "name": _text(MAX_NAME, "The name in the agent card. Default: the workflow's name."),
                    "description": _text(MAX_CARD_TEXT, "The description in the agent card."),
                    "version": _text(
                        MAX_NAME, "The version in the agent card. Default: the workflow version."
                    ),
                    "skills": {
                        "type": "array",
                        "maxItems": MAX_CARD_ITEMS,
                        "description": "The skills in the agent card. Default: one skill, the workflow.",
                        "items": {
                            "type": "object",
                            "required": ["id", "name", "description"],
                            "additionalProperties": False,
                            "properties": {
                                "id": _text(MAX_NAME, "Unique among the skills."),
                                "name": _text(MAX_NAME, "The name of the skill."),
                                "description": _text(MAX_CARD_TEXT, "What the skill does."),
                                "tags": words,
                                "examples": {
                                    "type": "array",
                                    "maxItems": MAX_CARD_ITEMS,
                                    "items": {"type": "string", "minLength": 1, "maxLength": MAX_CARD_TEXT},
                                },
                                "input_modes": words,
                                "output_modes": words,
                            },
                        },
                    },
                    "input_modes": {**words, "description": "Media types of the parts that it accepts."},
                    "output_modes": {**words, "description": "Media types of the parts that it returns."},
                    "streaming": {
                        "type": "boolean",
                        "default": True,
                        "description": "Whether callers can follow a task by a stream.",
                    },
                    "provider": {
                        "type": "object",
                        "required": ["organization", "url"],
                        "additionalProperties": False,
                        "properties": {"organization": _text(MAX_NAME, "Who offers it."), "url": url},
                    },
                    "documentation_url": url,
                    "icon_url": url,
                    "security": _choice(
                        ("key", "public"),
                        "public: callers need no API key, even where the API requires keys.",
                    ),
                    "input": {
                        "description": "The run input of a message. Expressions in it read run.message. Default: the "
                        "data part that fits the input schema, or else the text."
                    },
                    "artifacts": {
                        "type": "object",
                        "maxProperties": MAX_CARD_ITEMS,
                        "propertyNames": {"minLength": 1, "maxLength": MAX_NAME},
                        "additionalProperties": {
                            "description": "A string, an object with 'parts' or 'artifacts', or any other value."
                        },
                        "description": "Artifacts that callers get in addition to the output, by name.",
                    },
                    "message": {
                        "description": "A message that is the response to SendMessage in place of the completed task: "
                        "a string, an object with 'parts' or 'artifacts', or any other value. If it is null, the "
                        "response is the task."
                    },
                },
            },
        ],
    }


def _join() -> JsonObject:
    cancel_rest: JsonObject = {
        "type": "boolean",
        "default": True,
        "description": "Cancel the branches that are still running when the join is satisfied.",
    }
    return {
        "description": "How many of the steps in 'needs' must complete before the step starts.",
        "default": "all",
        "oneOf": [
            {"enum": [*JOIN_POLICIES]},
            {
                "type": "object",
                "required": ["at_least"],
                "additionalProperties": False,
                "properties": {
                    "at_least": _integer(1, MAX_JOINED, "At least this many steps."),
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
        "description": "An expression that returns a list, or a list that can contain expressions.",
        "examples": ["${ input.items }"],
    }
    return {
        "description": "Calls the agent once for each item of a list. 'item' and 'index' are available in 'input' "
        "and 'when'. The output is the list of the outputs, in the order of the items.",
        "oneOf": [
            items,
            {
                "type": "object",
                "required": ["items"],
                "additionalProperties": False,
                "properties": {
                    "items": items,
                    "mode": _choice(EACH_MODES, "Process the items in parallel or one after another."),
                    "limit": {
                        **_integer(
                            1, MAX_ITEMS_AT_ONCE, "Maximum number of items processed at the same time."
                        ),
                        "default": DEFAULT_ITEMS_AT_ONCE,
                    },
                    "on_error": _choice(
                        AFTER_ITEM,
                        "What happens when an item fails: the step fails, the item's output is "
                        "null, or each output says how its item ended.",
                    ),
                },
            },
        ],
    }


_CONDITION: JsonObject = {"type": ["string", "boolean"], "minLength": 1}


def _repeat() -> JsonObject:
    return {
        "type": "object",
        "description": "Runs the step, or the block, round by round until a condition is true. 'round' and "
        "'previous.steps.NAME' are available inside the step.",
        "examples": [{"until": "steps.review.output.data.score > 0.9", "max_rounds": 5}],
        "required": ["until"],
        "additionalProperties": False,
        "properties": {
            "until": {
                **_CONDITION,
                "description": "A CEL condition that reads the steps of the round that has just ended.",
            },
            "max_rounds": {**_integer(1, MAX_ROUNDS, "Maximum number of rounds."), "default": DEFAULT_ROUNDS},
            "delay": {**_duration("The delay between two rounds."), "default": "0s"},
            "on_max": _choice(
                AFTER_ROUNDS,
                "What happens if the condition is false after the last round: the step fails with max_rounds, or it "
                "completes with the output of that round.",
            ),
        },
    }


def _switch() -> JsonObject:
    return {
        "type": "array",
        "description": "Branches, of which the first one whose condition is true runs. Its output is the step's.",
        "minItems": 1,
        "maxItems": MAX_BRANCHES,
        "items": {
            "type": "object",
            "required": ["steps"],
            "oneOf": [{"required": ["when"]}, {"required": ["else"]}],
            "additionalProperties": False,
            "properties": {
                "when": {**_CONDITION, "description": "A CEL condition, with or without ${ }."},
                "else": {
                    "const": True,
                    "description": "The last branch, which runs if no other branch does.",
                },
                "steps": _steps("The steps of the branch, which is a block."),
                "output": {"description": "The output of the branch. Strings can contain ${ … }."},
            },
        },
    }


def _retry() -> JsonObject:
    return {
        "type": "object",
        "description": "When and how often a failed call is retried. Overrides the agent's retry policy.",
        "additionalProperties": False,
        "properties": {
            "max_attempts": {
                **_integer(1, MAX_ATTEMPTS, "Maximum number of attempts, including the first."),
                "default": 3,
            },
            "backoff": {
                **_choice(BACKOFFS, "How the delay grows with each attempt."),
                "default": "exponential",
            },
            "first_delay": {**_duration("The delay before the second attempt."), "default": "1s"},
            "max_delay": {**_duration("Maximum delay."), "default": "1m"},
            "jitter": {
                "type": "boolean",
                "default": True,
                "description": "Randomize the delay.",
            },
            "on": {
                "type": "array",
                "default": ["no_answer", 408, 425, 429, "5xx"],
                "description": "Which failures are retried: no_answer, any, HTTP statuses and classes (429, 5xx), "
                "JSON-RPC codes (below 0), error codes.",
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
