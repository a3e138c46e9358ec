"""
How a step fails, whatever its kind: another attempt, a failure that `on_error` or a join handles, or an unknown
outcome.

What a failed attempt means follows from the step's delivery, its retry policy and the error; when to try again is in
`machine/retry.py`.
"""

from __future__ import annotations

from trunkline.clock import after
from trunkline.machine.effects import StartTimer
from trunkline.machine.events import (
    StepCompensationFailed,
    StepFailed,
    StepOutcomeUnknown,
    StepRetryScheduled,
)
from trunkline.machine.inputs import RetryDue
from trunkline.machine.retry import DEFAULT_POLICY, delay_before, is_answered, is_worth_retrying, was_sent
from trunkline.machine.state import StepState
from trunkline.machine.steps.timers import retry_timer
from trunkline.machine.turn import Turn, deadline_timer
from trunkline.messages import AgentResult, StepError, complete_fix
from trunkline.workflow import CompiledStep


def fail(turn: Turn, plan: CompiledStep, step: StepState, error: StepError) -> None:
    """Fails the step without a call."""
    error.step = step.name
    _complete_fix(turn, plan, step, error)
    _record_failure(turn, plan, step, step.attempts, error)


def fail_attempt(
    turn: Turn, plan: CompiledStep, step: StepState, result: AgentResult, error: StepError
) -> None:
    """An attempt has failed: schedules the next one, or fails the step, or leaves its outcome unknown."""
    error.step = step.name
    error.attempt = result.attempt
    _complete_fix(turn, plan, step, error)
    if plan.definition.delivery == "at_most_once" and was_sent(error) and not is_answered(error):
        turn.record(StepOutcomeUnknown(step.name, result.attempt, outcome_unknown(turn, step, error)))
        return
    if _may_retry(turn, plan, step, result, error):
        _schedule_retry(turn, plan, step, result, error)
        return
    _record_failure(turn, plan, step, result.attempt, error, result)


def _record_failure(
    turn: Turn,
    plan: CompiledStep,
    step: StepState,
    attempt: int,
    error: StepError,
    result: AgentResult | None = None,
) -> None:
    """The step has failed for good. What that means for a compensation is a person's to decide."""
    protocol, context = (None, None) if result is None else (result.protocol, result.context_id)
    if plan.compensates is not None:
        if plan.definition.deadline is not None:
            turn.cancel_timer(deadline_timer(step))
        turn.record(StepCompensationFailed(step.name, attempt, error, protocol, context))
    else:
        handled = _is_handled(plan, step)
        turn.record(StepFailed(step.name, attempt, error, handled, protocol, context))


def fail_without_call(turn: Turn, plan: CompiledStep, step: StepState, error: StepError) -> None:
    """The attempt of a step that calls no agent has failed: the same road as the failure of a call."""
    result = AgentResult(
        task_id=turn.task_id_of(step),
        run_id=turn.state.id,
        step=step.name,
        attempt=step.attempts,
        status="error",
        at=turn.now,
        error=error,
    )
    fail_attempt(turn, plan, step, result, error)


def _may_retry(
    turn: Turn, plan: CompiledStep, step: StepState, result: AgentResult, error: StepError
) -> bool:
    if turn.is_ending or step.status == "OUTCOME_UNKNOWN":
        return False
    if plan.definition.delivery == "at_most_once" and was_sent(error):
        return False
    policy = plan.definition.retry or result.retry or DEFAULT_POLICY
    return step.attempts < policy.max_attempts and is_worth_retrying(policy, error)


def _schedule_retry(
    turn: Turn, plan: CompiledStep, step: StepState, result: AgentResult, error: StepError
) -> None:
    policy = plan.definition.retry or result.retry or DEFAULT_POLICY
    delay = delay_before(policy, step.attempts + 1, error, salt=result.task_id)
    due = after(turn.now, delay)
    turn.record(
        StepRetryScheduled(
            step.name, result.attempt, due, error, is_answered(error), result.protocol, result.context_id
        )
    )
    turn.add_effect(StartTimer(retry_timer(step), due, RetryDue(step.name, step.attempts)))


def fail_at_deadline(turn: Turn, plan: CompiledStep, step: StepState, error: StepError) -> None:
    """There is no more time: the step fails, whatever its retries."""
    if plan.definition.delivery == "at_most_once" and step.status == "RUNNING":
        turn.record(StepOutcomeUnknown(step.name, step.attempts, outcome_unknown(turn, step, error)))
    else:
        fail(turn, plan, step, error)


def _complete_fix(turn: Turn, plan: CompiledStep, step: StepState, error: StepError) -> None:
    agent = plan.agent if step.route is None else step.route.agent
    complete_fix(error, run=turn.state.id, step=step.name, agent=agent or None)


def _is_handled(plan: CompiledStep, step: StepState) -> bool:
    # What the failure of an item means is the loop's to say.
    return plan.handles_failure or step.name != plan.name


def outcome_unknown(turn: Turn, step: StepState, cause: StepError | None) -> StepError:
    why = f" ({cause.message})" if cause is not None else ""
    error = StepError(
        code="outcome_unknown",
        message=f"The agent may or may not have done the work, because its response was lost{why}.",
        step=cause.step if cause is not None else None,
        attempt=cause.attempt if cause is not None else None,
    )
    complete_fix(error, run=turn.state.id, step=step.name)
    return error
