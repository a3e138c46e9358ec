"""
JSON blocks that say what is on the wire, held to the dialect.

A request must be what the dialect makes of the task that can be read out of it; an answer must be taken for a success,
a failure for a failure; and what is said about a wrong answer must be what the operator reads.
"""

from __future__ import annotations

from typing import cast

from tests.docs.blocks import Block

from trunkline.jsontypes import Json, JsonObject, decode
from trunkline.messages import AgentTask
from trunkline.protocols import (
    AgentAnswer,
    Failed,
    Outcome,
    ProtocolAdapter,
    ProtocolAdapterFactory,
    ProtocolTranslationError,
    Succeeded,
    validate_protocol_config,
)
from trunkline.protocols.outcomes import failure_of

# The words that name a dialect; every other one is of its options, or about the block.
_KINDS = ("request", "answer", "failure", "wrong")
_ABOUT_THE_BLOCK = {*_KINDS, "status", "file", "output", "run", "rest", "message"}
# The id of the request that a wrong answer is for.
ASKED_WITH = "task-123"


def mistakes_on_the_wire(block: Block) -> list[str]:
    kind = next((word for word in _KINDS if word in block.words), None)
    match kind:
        case "request":
            return _mistakes_of_request(block)
        case "answer":
            outcome = outcome_of(block, _task_id(_payload(block)))
            good = isinstance(outcome, Succeeded) and not outcome.warnings
            return [] if good else [f"the dialect takes it for {outcome}"]
        case "failure":
            outcome = outcome_of(block, _task_id(_payload(block)))
            return [] if isinstance(outcome, Failed) else [f"the dialect takes it for {outcome}"]
        case _:
            return []


def symptoms_of(block: Block) -> list[str]:
    """What the operator reads when an agent answers so: the error's message, or the warnings."""
    outcome = outcome_of(block, ASKED_WITH)
    if isinstance(outcome, Failed):
        return [outcome.error.message]
    assert isinstance(outcome, Succeeded), outcome
    return list(outcome.warnings)


def outcome_of(block: Block, task_id: str) -> Outcome:
    answer = AgentAnswer(int(block.words.get("status", 200)), {}, block.text.encode())
    try:
        return _dialect(block).decode(answer, AgentTask(task_id=task_id, input_data={}))
    except ProtocolTranslationError as exc:
        return failure_of(exc)


def _mistakes_of_request(block: Block) -> list[str]:
    said = _payload(block)
    mode = block.words.get("input_mode", "text")
    task = AgentTask(task_id=_task_id(said), input_data=_input_of(said, mode))
    sent = decode(_dialect(block).encode(task).body)
    return [] if sent == said else [f"the dialect sends {sent}"]


def _dialect(block: Block) -> ProtocolAdapter:
    protocol = next(block.words[kind] for kind in _KINDS if kind in block.words)
    config: JsonObject = {word: value for word, value in block.words.items() if word not in _ABOUT_THE_BLOCK}
    assert validate_protocol_config(protocol, config) == []
    return ProtocolAdapterFactory.create_adapter(protocol, config)


def _payload(block: Block) -> JsonObject:
    return cast("JsonObject", decode(block.text.encode()))


def _task_id(payload: JsonObject) -> str:
    return cast("str", payload.get("task_id", payload.get("id")))


def _input_of(payload: JsonObject, mode: str) -> Json:
    """The step's input of which this request was made."""
    if "input" in payload:
        return payload["input"]
    params = cast("JsonObject", payload["params"])
    message = cast("JsonObject | None", params.get("message"))
    if message is None:
        return params
    if "metadata" in message:
        return message["metadata"]
    text = cast("str", cast("list[JsonObject]", message["parts"])[0]["text"])
    return decode(text.encode()) if mode == "json" else text
