"""
What an agent's answer means for the step.

    completed, or a direct Message        Succeeded
    submitted, working                    Working, when there is a task to ask for; else Failed
    input-required, auth-required         Interrupted; status.message has the question
    every other state, or none            Failed: "Task state: <state>", then the agent's own words
    error                                 Failed: "JSON-RPC Error <code>: <message>"
"""

from __future__ import annotations

from msgspec import UNSET, Raw

from trunkline.jsontypes import Json, encode
from trunkline.messages import Question
from trunkline.protocols.a2a_v03.model import Part, data_in, is_function_call, parts_of, text_of
from trunkline.protocols.a2a_v03.output import history_notes, output_of
from trunkline.protocols.a2a_v03.reading import Reading
from trunkline.protocols.a2a_v03.states import (
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
from trunkline.protocols.jsonrpc import RpcError, outcome_of_error, whole_result
from trunkline.protocols.outcomes import Failed, Interrupted, Outcome, Succeeded, Working, step_error
from trunkline.protocols.outputs import OutputMode, finish, output_of_value

NOTHING_EXTRACTED = (
    "Extracted no output from the response: the 'artifacts' array is empty or misses 'parts'; "
    "the full result is the output. Let the agent answer with at least one artifact with parts"
)
_STATE_FIX = "Let the agent set status.state to the exact string 'completed' when it succeeded."
_ERROR_FIX = "Let the agent use the JSON-RPC 'error' object, not 'result', for failures."
_INPUT_HINT = (
    "The agent receives the request but can't parse its input: it is the text of params.message.parts[0], "
    "which may be JSON; protocol_config.input_mode chooses text, json or data."
)
_FIX_BY_CODE = {
    -32700: "The agent receives the request but can't parse it: let it accept Content-Type application/json.",
    -32600: _INPUT_HINT,
    -32601: "The agent does not know the method: check protocol_config.method and the agent's protocol.",
    -32602: _INPUT_HINT,
    -32603: "Look at the agent's log: it failed inside. If it could not read its input, that is the text of "
    "params.message.parts[0].",
    -32001: "The agent does not know the task any more: start the run again.",
    -32005: "The agent does not take this content type: choose another protocol_config.input_mode.",
}
# The agent says that it does not know the method, or not this version of A2A: it has not taken the work.
_OTHER_DIALECT = frozenset({-32601, -32009})
_UNKNOWN_TASK = -32001


def outcome_of_answer(
    answer: Reading | RpcError, body: bytes, mode: OutputMode, *, any_result: bool
) -> Outcome:
    """What an answer means; with `any_result` a result that is not A2A's is an output as it is."""
    if isinstance(answer, RpcError):
        return outcome_of_error(answer, _FIX_BY_CODE, _OTHER_DIALECT, _UNKNOWN_TASK)
    return _outcome_of_reading(answer, body, mode, any_result=any_result)


def _outcome_of_reading(reading: Reading, body: bytes, mode: OutputMode, *, any_result: bool) -> Outcome:
    if any_result and not reading.certain:
        return _succeeded_with_value(body, mode)
    if reading.form == "message" and reading.state is None and reading.reported_error is None:
        return _succeeded(reading, body, mode)
    if reading.form == "artifact-update" and reading.state is None:
        reading.state = "working"
    state = canonical(reading.state or UNKNOWN)
    if state == COMPLETED and reading.reported_error is None:
        return _succeeded(reading, body, mode)
    if state in PENDING and reading.remote_task_id is not None:
        return Working(
            remote_task_id=reading.remote_task_id,
            state=state,
            context_id=reading.context_id,
            text=said_meanwhile(reading),
        )
    if state in INTERRUPTED:
        return _interrupted(reading, state)
    return _failed(reading, body, state)


def said_meanwhile(reading: Reading) -> str:
    """The words of the status; Google's ADK repeats the user's own message there when it takes a task."""
    said = reading.status_message
    return "" if said is None or is_user(said.role) else text_of(said)


def _succeeded(reading: Reading, body: bytes, mode: OutputMode) -> Succeeded:
    warnings = [*reading.notes, *history_notes(reading.history)]
    output = output_of(reading)
    if output.is_empty():
        warnings.append(NOTHING_EXTRACTED)
        text = bytes(whole_result(body))
    else:
        text = finish(output, mode, warnings)
    return Succeeded(
        output=text,
        context_id=reading.context_id,
        remote_task_id=reading.remote_task_id,
        warnings=tuple(warnings),
    )


def _succeeded_with_value(body: bytes, mode: OutputMode) -> Succeeded:
    value = whole_result(body)
    shaped = output_of_value(value) if mode == "full" else None
    return Succeeded(output=bytes(value) if shaped is None else finish(shaped, mode, []))


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


def _failed(reading: Reading, body: bytes, state: str) -> Failed:
    message = f"Task state: {shown(reading.state or UNKNOWN)}"
    words = reading.reported_error or text_of(reading.status_message) or text_of(reading.message)
    if words:
        message += f": {words}"
    fix = ""
    if reading.reported_error is not None:
        message += " (Errors not properly reported: the agent used 'result' instead of 'error' for a failure)"
        fix = _ERROR_FIX
    elif state not in RECOGNIZED:
        message += f" (Status state not recognized: {_state_complaint(reading)})"
        fix = _STATE_FIX
    elif state in PENDING:
        fix = "Let the agent name its task in result.id, so that it can be asked again."
    return Failed(
        error=step_error("agent_task_failed", message, fix=fix, detail=_detail(reading, body)),
        context_id=reading.context_id,
        remote_task_id=reading.remote_task_id,
        warnings=(*reading.notes, *history_notes(reading.history)),
    )


def _state_complaint(reading: Reading) -> str:
    if reading.state is None:
        return "the result has no status.state"
    return f"success is 'completed', not '{reading.state}'"


def _detail(reading: Reading, body: bytes) -> Json:
    """What could be extracted all the same, or the full result."""
    output = output_of(reading)
    return value_of(whole_result(body) if output.is_empty() else encode(output))
