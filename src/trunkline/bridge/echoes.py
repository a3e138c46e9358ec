"""
Secrets that an agent repeats, taken out of what it says.

Whatever an agent answers can end up in a step, an event, a log line or another agent's input: this is done once, where
the answer has been understood, and before anybody else sees it.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from trunkline.bridge.redaction import Redaction
from trunkline.messages import Question, StepError
from trunkline.protocols import Failed, Interrupted, Outcome, Succeeded, Working


def without_echoes(outcome: Outcome, redaction: Redaction) -> Outcome:
    if not redaction.longest:
        return outcome
    context_id = _text(outcome.context_id, redaction)
    match outcome:
        case Succeeded():
            return replace(
                outcome,
                output=redaction.body(outcome.output),
                context_id=context_id,
                remote_task_id=_text(outcome.remote_task_id, redaction),
                warnings=tuple(map(redaction.text, outcome.warnings)),
            )
        case Failed():
            return replace(
                outcome,
                error=_error(outcome.error, redaction),
                context_id=context_id,
                remote_task_id=_text(outcome.remote_task_id, redaction),
                warnings=tuple(map(redaction.text, outcome.warnings)),
            )
        case Working():
            return replace(
                outcome,
                remote_task_id=redaction.text(outcome.remote_task_id),
                state=redaction.text(outcome.state),
                context_id=context_id,
            )
        case Interrupted():
            return replace(
                outcome,
                question=_question(outcome.question, redaction),
                remote_task_id=_text(outcome.remote_task_id, redaction),
                context_id=context_id,
            )
        case _:
            assert_never(outcome)


def _text(text: str | None, redaction: Redaction) -> str | None:
    return None if text is None else redaction.text(text)


def _error(error: StepError, redaction: Redaction) -> StepError:
    return replace(
        error,
        message=redaction.text(error.message),
        fix=redaction.text(error.fix),
        detail=redaction.value(error.detail),
    )


def _question(question: Question, redaction: Redaction) -> Question:
    return replace(question, text=redaction.text(question.text), data=redaction.value(question.data))
