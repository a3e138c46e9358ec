"""
Removes secrets that an agent repeats from what it answers, and push tokens from what is recorded.

Whatever an agent answers can end up in a step, an event, a log line or another agent's input. It is redacted once,
where the answer has been decoded, before anything else reads it.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from trunkline.messages import Progress, Question, StepError
from trunkline.protocols import Failed, Interrupted, Outcome, PushTarget, StreamUpdate, Succeeded, Working
from trunkline.telemetry.redaction import REDACTED, Redaction


def redact_outcome(outcome: Outcome, redaction: Redaction) -> Outcome:
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
            return redact_failure(outcome, redaction)
        case Working():
            return replace(
                outcome,
                remote_task_id=redaction.text(outcome.remote_task_id),
                state=redaction.text(outcome.state),
                context_id=context_id,
                text=redaction.text(outcome.text),
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


def redact_failure(failed: Failed, redaction: Redaction) -> Failed:
    if not redaction.longest:
        return failed
    return replace(
        failed,
        error=_error(failed.error, redaction),
        context_id=_text(failed.context_id, redaction),
        remote_task_id=_text(failed.remote_task_id, redaction),
        warnings=tuple(map(redaction.text, failed.warnings)),
    )


def redact_stream_event(update: StreamUpdate, redaction: Redaction) -> StreamUpdate:
    if not redaction.longest:
        return update
    progress = update.progress
    return replace(
        update,
        remote_task_id=_text(update.remote_task_id, redaction),
        context_id=_text(update.context_id, redaction),
        progress=None if progress is None else _progress(progress, redaction),
    )


def _progress(progress: Progress, redaction: Redaction) -> Progress:
    return replace(
        progress,
        text=redaction.text(progress.text),
        artifact_id=_text(progress.artifact_id, redaction),
        name=_text(progress.name, redaction),
        parts=[redaction.value(part) for part in progress.parts],
    )


def _text(text: str | None, redaction: Redaction) -> str | None:
    return None if text is None else redaction.text(text)


def _error(error: StepError, redaction: Redaction) -> StepError:
    return replace(
        error,
        message=redaction.text(error.message),
        fix=redaction.text(error.fix),
        fix_command=_text(error.fix_command, redaction),
        detail=redaction.value(error.detail),
    )


def _question(question: Question, redaction: Redaction) -> Question:
    return replace(question, text=redaction.text(question.text), data=redaction.value(question.data))


_HIDDEN = REDACTED.encode()


def redact_push_target(body: bytes, push_target: PushTarget | None) -> bytes:
    if push_target is None:
        return body
    for secret in (push_target.url.rpartition("/")[2], push_target.token):
        body = body.replace(secret.encode(), _HIDDEN)
    return body
