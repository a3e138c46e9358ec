"""
What an agent's result means for the step.

    completed, or a direct Message        Succeeded
    submitted, working                    Working, when there is a task to ask for; else Failed
    input-required, auth-required         Interrupted; the status message has the question
    every other state, or none            Failed: "Task state: <state>", then the agent's own words
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import UNSET

from trunkline.jsontypes import Json, encode
from trunkline.messages import Question
from trunkline.protocols.a2a.common.output import history_notes, output_of
from trunkline.protocols.a2a.common.parsed_result import Message_co, ParsedResult, PartsMessage, text_of
from trunkline.protocols.a2a.common.states import (
    COMPLETED,
    INTERRUPTED,
    PENDING,
    RECOGNIZED,
    UNKNOWN,
    canonical_state,
    displayed_state,
    is_user,
)
from trunkline.protocols.answer_json import decode_checked
from trunkline.protocols.outcomes import Failed, Interrupted, Outcome, Succeeded, Working, step_error
from trunkline.protocols.outputs import OutputMode, encode_output

NOTHING_EXTRACTED = (
    "Extracted no output from the response: the 'artifacts' array is empty or misses 'parts'; "
    "the full result is the output. Let the agent answer with at least one artifact with parts"
)


class A2AErrorTexts(msgspec.Struct, frozen=True, kw_only=True):
    """How a version of A2A spells what an agent should have said."""

    completed: str
    state_fix: str
    error_fix: str
    error_misplaced: str
    task_unnamed_fix: str


def outcome_of(
    reading: ParsedResult[PartsMessage], whole: Callable[[], bytes], mode: OutputMode, texts: A2AErrorTexts
) -> Outcome:
    """What a result means; `whole` gives all of it as JSON, for when nothing can be extracted."""
    if reading.form == "message" and reading.state is None and reading.reported_error is None:
        return _succeeded(reading, whole, mode)
    unstated = "working" if reading.form == "artifact-update" else UNKNOWN
    spelled = reading.state or unstated
    state = canonical_state(spelled)
    if state == COMPLETED and reading.reported_error is None:
        return _succeeded(reading, whole, mode)
    if state in PENDING and reading.remote_task_id is not None:
        return Working(
            remote_task_id=reading.remote_task_id,
            state=state,
            context_id=reading.context_id,
            text=text_of(agent_message(reading.status_message)),
        )
    if state in INTERRUPTED:
        return _interrupted(reading, state)
    return _failed(reading, whole, spelled, texts)


def agent_message(message: Message_co | None) -> Message_co | None:
    """What the agent says while it works; Google's ADK repeats the user's own message when it takes a task."""
    return None if message is None or is_user(message.role) else message


def _succeeded(
    reading: ParsedResult[PartsMessage], whole: Callable[[], bytes], mode: OutputMode
) -> Succeeded:
    warnings = [*reading.notes, *history_notes(reading.history)]
    output = output_of(reading)
    if mode == "whole":
        output.message = reading.message_whole if reading.form == "message" else UNSET
        output.status_message = reading.status_message_whole or UNSET
        text = encode_output(output, mode, warnings)
    elif output.is_empty():
        warnings.append(NOTHING_EXTRACTED)
        text = whole()
    else:
        text = encode_output(output, mode, warnings)
    return Succeeded(
        output=text,
        context_id=reading.context_id,
        remote_task_id=reading.remote_task_id,
        warnings=tuple(warnings),
    )


def _interrupted(reading: ParsedResult[PartsMessage], state: str) -> Interrupted:
    kind = "auth" if state == "auth-required" else "input"
    asked = reading.status_message or reading.message
    response = output_of(reading).response
    # The functions that an agent waits for, without the accompanying text.
    values = [] if asked is None else asked.calls() or asked.data_values()
    data = None if not values else decode_checked(encode(values[0] if len(values) == 1 else values))
    return Interrupted(
        question=Question(
            kind=kind,
            text=text_of(asked) or (response if response is not UNSET else _default_question(kind, data)),
            data=data,
        ),
        remote_task_id=reading.remote_task_id,
        context_id=reading.context_id,
    )


def _default_question(kind: str, data: Json) -> str:
    """Words for a question that has none."""
    name = data.get("name") if isinstance(data, dict) else None
    if isinstance(name, str) and name:
        return f"The agent waits for the response of its function {name}"
    return "The agent asks for authentication" if kind == "auth" else "The agent asks for input"


def _failed(
    reading: ParsedResult[PartsMessage], whole: Callable[[], bytes], spelled: str, texts: A2AErrorTexts
) -> Failed:
    message = f"Task state: {displayed_state(spelled)}"
    words = reading.reported_error or text_of(reading.status_message) or text_of(reading.message)
    if words:
        message += f": {words}"
    fix = ""
    state = canonical_state(spelled)
    if reading.reported_error is not None:
        message += f" (Errors not properly reported: {texts.error_misplaced})"
        fix = texts.error_fix
    elif state not in RECOGNIZED:
        message += f" (Status state not recognized: {_state_complaint(reading, texts)})"
        fix = texts.state_fix
    elif state in PENDING:
        fix = texts.task_unnamed_fix
    return Failed(
        error=step_error("agent_task_failed", message, fix=fix, detail=_detail(reading, whole)),
        context_id=reading.context_id,
        remote_task_id=reading.remote_task_id,
        warnings=(*reading.notes, *history_notes(reading.history)),
    )


def _state_complaint(reading: ParsedResult[PartsMessage], texts: A2AErrorTexts) -> str:
    if reading.state is None:
        return "the result has no status.state"
    return f"success is '{texts.completed}', not '{reading.state}'"


def _detail(reading: ParsedResult[PartsMessage], whole: Callable[[], bytes]) -> Json:
    """What could be extracted all the same, or the full result."""
    output = output_of(reading)
    return decode_checked(whole() if output.is_empty() else encode(output))
