"""
What an agent's answer means for the step.

    completed, or a direct Message        Succeeded
    submitted, working                    Working, when there is a task to ask for; else Failed
    input-required, auth-required         Interrupted; status.message has the question
    every other state, or none            Failed: "Task state: <state>", then the agent's own words
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET, Raw

from trunkline.jsontypes import Json, encode
from trunkline.messages import Question
from trunkline.protocols.a2a_v1.model import Message, Part, data_in, is_function_call, parts_of, text_of
from trunkline.protocols.a2a_v1.output import history_notes, output_of
from trunkline.protocols.a2a_v1.reading import Reading
from trunkline.protocols.a2a_v1.states import (
    COMPLETED,
    INTERRUPTED,
    PENDING,
    RECOGNIZED,
    UNKNOWN,
    canonical,
    is_user,
    shown,
)
from trunkline.protocols.answer_json import value_of
from trunkline.protocols.outcomes import Failed, Interrupted, Outcome, Succeeded, Working, step_error
from trunkline.protocols.outputs import OutputMode, finish

NOTHING_EXTRACTED = (
    "Extracted no output from the response: the 'artifacts' array is empty or misses 'parts'; "
    "the full result is the output. Let the agent answer with at least one artifact with parts"
)
_STATE_FIX = "Let the agent set status.state to TASK_STATE_COMPLETED when it succeeded."
_ERROR_FIX = "Let the agent answer with an error, not with a result, when it failed."
_INPUT_HINT = (
    "The agent receives the request but can't parse its input: it is the text of message.parts[0], which may "
    "be JSON; protocol_config.input_mode chooses text, json or data."
)
# What to do about an error, by the number that it has in the JSON-RPC binding.
FIX_BY_CODE = {
    -32700: "The agent receives the request but can't parse it: let it accept Content-Type application/json.",
    -32600: _INPUT_HINT,
    -32601: "The agent does not know this operation of A2A 1.0: check its url and its protocol.",
    -32602: _INPUT_HINT,
    -32603: "Look at the agent's log: it failed inside. If it could not read its input, that is the text of "
    "message.parts[0].",
    -32001: "The agent does not know the task any more: start the run again.",
    -32005: "The agent does not take this content type: choose another protocol_config.input_mode.",
    -32008: "The agent insists on an extension of A2A that Trunkline does not speak.",
    -32009: "The agent does not speak A2A 1.0: register it with the protocol that it speaks, or with auto.",
}
# The agent says that it does not know the operation, or not this version of A2A: it has not taken the work.
OTHER_DIALECT = frozenset({-32601, -32009})
UNKNOWN_TASK = -32001
CODE_BY_REASON = {
    "TASK_NOT_FOUND": UNKNOWN_TASK,
    "TASK_NOT_CANCELABLE": -32002,
    "PUSH_NOTIFICATION_NOT_SUPPORTED": -32003,
    "UNSUPPORTED_OPERATION": -32004,
    "CONTENT_TYPE_NOT_SUPPORTED": -32005,
    "INVALID_AGENT_RESPONSE": -32006,
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": -32007,
    "EXTENSION_SUPPORT_REQUIRED": -32008,
    "VERSION_NOT_SUPPORTED": -32009,
    "INVALID_REQUEST": -32600,
    "METHOD_NOT_FOUND": -32601,
    "INVALID_PARAMS": -32602,
    "INTERNAL_ERROR": -32603,
}


def reason_in(details: Json) -> str | None:
    """The reason that a `google.rpc.ErrorInfo` among an error's details names."""
    for item in details if isinstance(details, list) else [details]:
        reason = item.get("reason") if isinstance(item, dict) else None
        if isinstance(reason, str) and reason:
            return reason
    return None


def outcome_of(reading: Reading, whole: Callable[[], bytes], mode: OutputMode) -> Outcome:
    """What a result means; `whole` gives all of it as JSON, for when nothing can be extracted."""
    if reading.form == "message" and reading.state is None and reading.reported_error is None:
        return _succeeded(reading, whole, mode)
    if reading.form == "artifact-update" and reading.state is None:
        reading.state = "working"
    state = canonical(reading.state or UNKNOWN)
    if state == COMPLETED and reading.reported_error is None:
        return _succeeded(reading, whole, mode)
    if state in PENDING and reading.remote_task_id is not None:
        return Working(
            remote_task_id=reading.remote_task_id,
            state=state,
            context_id=reading.context_id,
            text=text_of(heard_meanwhile(reading.status_message)),
        )
    if state in INTERRUPTED:
        return _interrupted(reading, state)
    return _failed(reading, whole, state)


def heard_meanwhile(message: Message | None) -> Message | None:
    """What the agent says while it works; Google's ADK repeats the user's own message when it takes a task."""
    return None if message is None or is_user(message.role) else message


def _succeeded(reading: Reading, whole: Callable[[], bytes], mode: OutputMode) -> Succeeded:
    warnings = [*reading.notes, *history_notes(reading.history)]
    output = output_of(reading)
    if output.is_empty():
        warnings.append(NOTHING_EXTRACTED)
        text = whole()
    else:
        text = finish(output, mode, warnings)
    return Succeeded(
        output=text,
        context_id=reading.context_id,
        remote_task_id=reading.remote_task_id,
        warnings=tuple(warnings),
    )


def _interrupted(reading: Reading, state: str) -> Interrupted:
    kind = "auth" if state == "auth-required" else "input"
    asked = reading.status_message or reading.message
    response = output_of(reading).response
    values = _asked_data(parts_of(asked))
    data = None if not values else value_of(encode(values[0] if len(values) == 1 else values))
    return Interrupted(
        question=Question(
            kind=kind,
            text=text_of(asked) or (response if response is not UNSET else _unspoken(kind, data)),
            data=data,
        ),
        remote_task_id=reading.remote_task_id,
        context_id=reading.context_id,
    )


def _asked_data(parts: list[Part]) -> list[Raw]:
    """The data of a question: the functions that an agent waits for, without what it says beside them."""
    return data_in([part for part in parts if is_function_call(part)]) or data_in(parts)


def _unspoken(kind: str, data: Json) -> str:
    """Words for a question that has none."""
    name = data.get("name") if isinstance(data, dict) else None
    if isinstance(name, str) and name:
        return f"The agent waits for the response of its function {name}"
    return "The agent asks for authentication" if kind == "auth" else "The agent asks for input"


def _failed(reading: Reading, whole: Callable[[], bytes], state: str) -> Failed:
    message = f"Task state: {shown(reading.state or UNKNOWN)}"
    words = reading.reported_error or text_of(reading.status_message) or text_of(reading.message)
    if words:
        message += f": {words}"
    fix = ""
    if reading.reported_error is not None:
        message += " (Errors not properly reported: the agent answered with a result instead of an error)"
        fix = _ERROR_FIX
    elif state not in RECOGNIZED:
        message += f" (Status state not recognized: {_state_complaint(reading)})"
        fix = _STATE_FIX
    elif state in PENDING:
        fix = "Let the agent name its task in task.id, so that it can be asked again."
    return Failed(
        error=step_error("agent_task_failed", message, fix=fix, detail=_detail(reading, whole)),
        context_id=reading.context_id,
        remote_task_id=reading.remote_task_id,
        warnings=(*reading.notes, *history_notes(reading.history)),
    )


def _state_complaint(reading: Reading) -> str:
    if reading.state is None:
        return "the result has no status.state"
    return f"success is 'TASK_STATE_COMPLETED', not '{reading.state}'"


def _detail(reading: Reading, whole: Callable[[], bytes]) -> Json:
    """What could be extracted all the same, or the full result."""
    output = output_of(reading)
    return value_of(whole() if output.is_empty() else encode(output))
