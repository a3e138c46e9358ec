"""
The run state machine: decides what follows from a run's state and its queued inputs.

Deterministic, no I/O: it reads no clock and draws no random number, so the same state, inputs and time always give the
same events and effects. It changes the state that it is given; the driver (executor/driver.py) stores the transition
and performs the effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import assert_never

import msgspec

from trunkline.clock import Instant, after
from trunkline.jsontypes import Json, encode
from trunkline.machine import compensation
from trunkline.machine.effects import StartTimer
from trunkline.machine.events import (
    Payload,
    RunCancelled,
    RunCancelRequested,
    RunCompleted,
    RunContinued,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
    RunWaiting,
    StepCancelled,
    StepInputGiven,
    StepKept,
    StepOutcomeResolved,
    StepReplied,
    StepRequeued,
    StepSkipped,
)
from trunkline.machine.evolve import step_of
from trunkline.machine.inputs import (
    CancelOverdue,
    CancelRequested,
    CandidatesFound,
    ChildContinued,
    ChildEnded,
    ChildRefused,
    ChildWaiting,
    CompensateRequested,
    CompensationDecided,
    DeadlinePassed,
    EscalationDue,
    EventArrived,
    EventsRead,
    HedgeDue,
    Input,
    OutcomeResolved,
    OutputLookedUp,
    PauseRequested,
    PersonAnswered,
    ReplyGiven,
    ReplyOverdue,
    ResultArrived,
    ResumeRequested,
    RetryDue,
    RunRequested,
    StepDeadlinePassed,
    TaskClaimed,
    TaskReleased,
    TurnContinued,
    WaitDue,
)
from trunkline.machine.scope import evaluate_artifacts, evaluate_message
from trunkline.machine.state import FINAL_RUN_STATUSES, RunState, StepState
from trunkline.machine.steps import (
    agent,
    ask,
    child,
    failure,
    for_each,
    human_tasks,
    join,
    kinds,
    rounds,
    routing,
    timers,
    wait_for,
)
from trunkline.machine.turn import Turn
from trunkline.messages import NO_OUTPUT, AgentResult, StepError, fix_for
from trunkline.workflow import CompiledStep, ExpressionError, format_duration, step_of_item

# An agent that does not confirm a cancellation by then is left alone; the whole cancel ends within 10 s.
CANCEL_TIMEOUT = timedelta(seconds=8)

# Of steps that are over as soon as they begin: so many steps of a loop would otherwise end in one long transaction.
MAX_DONE_PER_TURN = 200
# Of their outputs, and of the inputs of steps that begin: all items of a loop may get the same large value.
MAX_BYTES_PER_TURN = 16 * 1024 * 1024

DEADLINE_TIMER = "deadline"
CANCEL_TIMER = "cancel"


def decide(
    state: RunState,
    inputs: Sequence[Input],
    now: Instant,
    *,
    reply_timeout: timedelta | None = None,
    max_bytes: int | None = None,
) -> Turn:
    """
    Takes the inputs in, in their order, and moves the run as far as it goes. Changes `state`.

    `reply_timeout`: how long a question waits for a person, where its step does not say; None: forever.
    `max_bytes`: how large the payloads of the run and its steps may be together.
    """
    turn = Turn(state, now, reply_timeout, max_bytes)
    had_failed = state.failure is not None
    for item in inputs:
        if state.status not in FINAL_RUN_STATUSES:
            _apply(turn, item)
        elif isinstance(item, CompensateRequested):
            compensation.reopen(turn)
    if state.status not in FINAL_RUN_STATUSES:
        _advance(turn)
    if _must_end(turn):
        _end_too_large(turn)
    elif not state.is_final:
        if state.failure is not None and not had_failed and state.cancel_requested_at is None:
            # Calls under way are waited for; a run may take days.
            child.stop_all(turn)
        _settle(turn)
    return turn


def abandon(state: RunState, error: StepError, now: Instant) -> Turn:
    """Ends a run that cannot be decided. Changes `state`."""
    turn = Turn(state, now)
    _stop_steps(turn, "The run could not continue.", cancel_at_agents=True)
    if state.is_compensating:
        compensation.give_up(turn)
    turn.record(RunFailed(error))
    _drop_run_timers(turn)
    return turn


def _must_end(turn: Turn) -> bool:
    """Whether the run would have to grow beyond the limit."""
    state = turn.state
    if state.is_compensating:
        # What was done is to be undone, however large the run becomes by it.
        return False
    return turn.is_too_large and not (turn.is_ending or state.paused or state.unfinished == 0)


def _end_too_large(turn: Turn) -> None:
    """No workflow can handle this: what its other steps would do makes the run larger still."""
    message = (
        f"The input of the run and the inputs and outputs of its steps have {turn.state.size_bytes} bytes together, "
        f"but the limit is {turn.max_bytes} (max_run_bytes)."
    )
    error = StepError(code="run_too_large", message=message, fix=fix_for("run_too_large"))
    _stop_steps(turn, "The run has too much data.", cancel_at_agents=True)
    _fail(turn, error)


def _apply(turn: Turn, item: Input) -> None:  # noqa: C901, PLR0912, PLR0915 - one case for each input
    match item:
        case RunRequested():
            _start(turn, item)
        case ResultArrived(result):
            if _is_known(turn, result.step):
                plan, step = _step(turn, result.step)
                agent.apply_result(turn, plan, step, result)
        case ChildEnded(name):
            if _is_known(turn, name):
                child.apply_end(turn, *_step(turn, name), item)
        case ChildRefused(name):
            if _is_known(turn, name):
                child.apply_refusal(turn, *_step(turn, name), item)
        case ChildWaiting(name):
            if _is_known(turn, name):
                child.apply_waiting(turn, _step(turn, name)[1], item)
        case ChildContinued(name):
            if _is_known(turn, name):
                child.apply_continued(turn, _step(turn, name)[1], item)
        case RetryDue(name, attempt):
            _retry(turn, name, attempt)
        case WaitDue(name, attempt):
            kinds.end_wait(turn, *_step(turn, name), attempt)
        case CandidatesFound(name):
            agent.take_candidates(turn, *_step(turn, name), item)
        case OutputLookedUp(name):
            kinds.take_output(turn, *_step(turn, name), item)
        case HedgeDue(name):
            routing.look_for_hedge(turn, *_step(turn, name), item)
        case EventArrived(name):
            wait_for.apply_event(turn, *_step(turn, name), item)
        case EventsRead(name):
            wait_for.read_on(turn, _step(turn, name)[1], item)
        case TurnContinued():
            # The steps that may begin follow by themselves.
            pass
        case DeadlinePassed():
            _pass_deadline(turn)
        case StepDeadlinePassed(name):
            plan, step = _step(turn, name)
            if plan.for_each is None:
                kinds.pass_deadline(turn, plan, step)
            else:
                for_each.pass_deadline(turn, plan, step)
        case CancelRequested(reason):
            _cancel(turn, reason)
        case CancelOverdue():
            if not turn.state.is_compensating:
                _stop_steps(
                    turn, "The agent did not confirm the cancellation in time.", cancel_at_agents=False
                )
        case PauseRequested():
            if _may_pause(turn.state):
                turn.record(RunPaused())
                child.pause_all(turn)
        case ResumeRequested():
            if turn.state.paused:
                turn.record(RunResumed())
                child.resume_all(turn)
        case ReplyGiven(name, reply):
            _, step = _step(turn, name)
            if step.has_open_question:
                timers.cancel_wait_timer(turn, step)
                turn.record(StepReplied(name, Payload(encode(reply))))
        case ReplyOverdue(name, attempt, replies):
            plan, step = _step(turn, name)
            if step.has_open_question and (step.attempts, step.replies) == (attempt, replies):
                agent.fail_unanswered(turn, plan, step)
        case PersonAnswered(name):
            ask.apply_answer(turn, _step(turn, name)[1], item)
        case EscalationDue(name):
            human_tasks.escalate(turn, _step(turn, name)[1], item)
        case TaskClaimed(name):
            human_tasks.claim(turn, _step(turn, name)[1], item)
        case TaskReleased(name):
            human_tasks.release(turn, _step(turn, name)[1], item)
        case OutcomeResolved():
            _resolve(turn, item)
        case CompensationDecided(name):
            if _is_known(turn, name):
                compensation.decide_failed(turn, _step(turn, name)[1], item)
        case CompensateRequested():
            # Only of a run that has ended.
            pass
        case _:
            assert_never(item)


def _may_pause(state: RunState) -> bool:
    return state.status == "COMPENSATING" or (
        state.status in {"RUNNING", "WAITING"} and state.cancel_requested_at is None
    )


def _is_known(turn: Turn, name: str) -> bool:
    return name in turn.state.workflow.steps or name in turn.state.steps


def _step(turn: Turn, name: str) -> tuple[CompiledStep, StepState]:
    return turn.state.workflow.plan(name), step_of(turn.state, name)


def _start(turn: Turn, request: RunRequested) -> None:
    if turn.state.status != "PENDING":
        return
    turn.record(RunStarted(turn.state.correlation_id))
    deadline = turn.state.workflow.deadline
    if deadline is not None:
        turn.add_effect(StartTimer(DEADLINE_TIMER, after(turn.state.created_at, deadline), DeadlinePassed()))
    for name, output in request.kept.items():
        turn.record(StepKept(name, Payload(bytes(output))))
    for name, given in request.inputs.items():
        turn.record(StepInputGiven(name, Payload(bytes(given))))
    for name, items in request.items.items():
        text = bytes(items)
        for_each.start_items(
            turn, *_step(turn, name), len(msgspec.json.decode(text, type=list[msgspec.Raw])), text
        )


def _retry(turn: Turn, name: str, attempt: int) -> None:
    plan, step = _step(turn, name)
    if step.status != "WAITING" or step.attempts != attempt:
        return
    if turn.state.paused or turn.is_ending:
        turn.record(StepRequeued(name))
    else:
        kinds.begin(turn, plan, step)


def _resolve(turn: Turn, item: OutcomeResolved) -> None:
    plan, step = _step(turn, item.step)
    if step.status != "OUTCOME_UNKNOWN":
        return
    match item.outcome:
        case "succeeded" | "failed":
            # The same road as the late answer takes.
            succeeded = item.outcome == "succeeded"
            error = StepError(code="agent_reported_error", message="A person reported that the agent failed.")
            result = AgentResult(
                task_id=turn.task_id_of(step),
                run_id=turn.state.id,
                step=step.name,
                attempt=step.attempts,
                status="success" if succeeded else "error",
                at=turn.now,
                output=item.output if succeeded else NO_OUTPUT,
                error=None if succeeded else error,
            )
            agent.apply_result(turn, plan, step, result)
        case "call_again":
            timers.cancel_wait_timer(turn, step)
            turn.record(StepOutcomeResolved(step.name))
        case _:
            assert_never(item.outcome)


def _cancel(turn: Turn, reason: str | None) -> None:
    if turn.state.cancel_requested_at is not None or turn.state.is_compensating:
        # What has been begun to be undone is undone.
        return
    turn.record(RunCancelRequested(reason))
    for step in _steps_under_way(turn):
        if step.name in turn.state.for_each:
            # It ends with its items.
            continue
        if step.status == "RUNNING" or step.waits_inside:
            kinds.stop(turn, step)
        else:
            _cancel_step(turn, step, "The run was cancelled.", cancel_at_agent=True)
    if turn.state.in_flight:
        turn.add_effect(StartTimer(CANCEL_TIMER, after(turn.now, CANCEL_TIMEOUT), CancelOverdue()))


def _steps_under_way(turn: Turn) -> list[StepState]:
    """The steps that have begun and not ended; of one that never began there is nothing to say."""
    return [step for step in turn.state.steps.values() if step.has_begun and not step.is_final]


def _cancel_step(turn: Turn, step: StepState, reason: str, *, cancel_at_agent: bool) -> None:
    if cancel_at_agent:
        kinds.stop(turn, step)
    else:
        timers.cancel_wait_timer(turn, step)
    turn.record(StepCancelled(step.name, reason))


def _stop_steps(turn: Turn, reason: str, *, cancel_at_agents: bool) -> None:
    for step in _steps_under_way(turn):
        _cancel_step(turn, step, reason, cancel_at_agent=cancel_at_agents)


def _pass_deadline(turn: Turn) -> None:
    deadline = turn.state.workflow.deadline
    if deadline is None or turn.state.is_compensating:
        return
    error = StepError(
        code="deadline_exceeded",
        message=f"The run did not finish within its deadline of {format_duration(deadline)}.",
        fix=fix_for("deadline_exceeded"),
    )
    _stop_steps(turn, "The workflow's deadline has passed.", cancel_at_agents=True)
    _fail(turn, error)


def _fail(turn: Turn, error: StepError) -> None:
    if not compensation.begin(turn, "FAILED", error):
        turn.record(RunFailed(error))
    _drop_run_timers(turn)


def _advance(turn: Turn) -> None:
    """Begins every step that may begin, in the order in which they became ready."""
    state = turn.state
    if state.is_compensating:
        # Compensations follow one another (`_settle`), however they become ready.
        state.ready.clear()
        return
    done = size = 0
    while True:
        while state.decided:
            _conclude(turn, *_step(turn, state.decided.popleft()))
        if not _may_begin(turn):
            return
        if done >= MAX_DONE_PER_TURN or size >= MAX_BYTES_PER_TURN:
            turn.add_effect(StartTimer(f"continue/{state.version}", turn.now, TurnContinued()))
            return
        name = state.ready.popleft()
        if name not in state.workflow.steps and step_of_item(name) not in state.for_each:
            # An item of a step that is over.
            continue
        plan, step = _step(turn, name)
        if step.status == "PENDING":
            _begin(turn, plan, step)
            size += len(step.input or b"")
            if plan.is_action and step.is_final:
                done += 1
                size += len(step.output or b"")


def _conclude(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    join.conclude(turn, plan)
    if plan.for_each is not None:
        for_each.conclude(turn, plan, step, plan.for_each)


def _may_begin(turn: Turn) -> bool:
    state = turn.state
    if not state.ready or state.paused or turn.is_ending or turn.is_too_large or state.status == "PENDING":
        return False
    limit = state.workflow.max_parallel
    return limit is None or state.in_flight + state.retrying < limit


def _begin(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    if step.has_begun:
        kinds.begin(turn, plan, step)
    elif step.name != plan.name:
        if _condition_holds(turn, plan, step):
            kinds.begin(turn, plan, step)
    elif _should_begin(turn, plan, step):
        if plan.for_each is not None:
            for_each.begin(turn, plan, step, plan.for_each)
        else:
            kinds.begin(turn, plan, step)


def _should_begin(turn: Turn, plan: CompiledStep, step: StepState) -> bool:
    """Whether a step begins whose needs are over; if not, how it has ended is recorded."""
    if (lost := join.failed_need(turn, plan)) is not None:
        turn.record(StepCancelled(step.name, f"The step {lost}, which this step needs, did not complete."))
        return False
    if plan.join is not None and join.cannot_be_met(step, plan.join):
        join.fail(turn, plan, step, plan.join)
        return False
    if plan.catches and not _catches_failure(turn, plan):
        turn.record(StepSkipped(step.name, f"Nothing to handle: {', '.join(plan.catches)} did not fail."))
        return False
    if plan.for_each is not None and plan.for_each.filters_items:
        return True
    return _condition_holds(turn, plan, step)


def _condition_holds(turn: Turn, plan: CompiledStep, step: StepState) -> bool:
    """What `when` says of a step, or of an item; if no, that is recorded."""
    if plan.when is None or (
        step.name != plan.name and plan.for_each is not None and not plan.for_each.filters_items
    ):
        return True
    try:
        chosen = plan.when.holds(turn.scope_of(step))
    except ExpressionError as exc:
        failure.fail(turn, plan, step, StepError(code="expression_failed", message=str(exc)))
        return False
    if not chosen:
        turn.record(StepSkipped(step.name, f"Its condition is false: {plan.definition.when}"))
    return chosen


def _catches_failure(turn: Turn, plan: CompiledStep) -> bool:
    return any(step_of(turn.state, name).status == "FAILED" for name in plan.catches)


def _settle(turn: Turn) -> None:
    """What the steps' states mean for the run as a whole."""
    state = turn.state
    if state.paused or (state.status == "PENDING" and state.cancel_requested_at is None):
        return
    if turn.is_ending and state.in_flight == 0:
        _end(turn)
    elif state.is_compensating:
        pass
    elif state.unfinished == 0:
        _complete(turn)
    elif _waits_for_people_alone(turn):
        if state.status != "WAITING":
            turn.record(RunWaiting(tuple(s.name for s in state.steps.values() if s.waiting_for is not None)))
    elif state.status == "WAITING":
        turn.record(RunContinued())
    if state.is_compensating:
        compensation.advance(turn)


def _waits_for_people_alone(turn: Turn) -> bool:
    state = turn.state
    return (
        state.in_flight == 0
        and state.retrying == 0
        and state.waiting_for_time_or_event == 0
        and state.awaiting_person > 0
        # What did not fit into this turn begins in the next one.
        and not _may_begin(turn)
    )


def _end(turn: Turn) -> None:
    failure = turn.state.failure
    if turn.state.cancel_requested_at is not None or failure is None:
        _stop_steps(turn, "The run was cancelled.", cancel_at_agents=False)
        if not compensation.begin(turn, "CANCELLED", None):
            turn.record(RunCancelled())
        _drop_run_timers(turn)
    else:
        _stop_steps(turn, "Another step failed.", cancel_at_agents=True)
        _fail(turn, failure)


def _complete(turn: Turn) -> None:
    try:
        output = encode(_output(turn))
        _check_published_values(turn)
    except ExpressionError as exc:
        _fail(turn, StepError(code="output_failed", message=str(exc), fix=fix_for("output_failed")))
        return
    try:
        turn.round_end = rounds.end_of(turn)
    except ExpressionError as exc:
        _fail(turn, StepError(code="expression_failed", message=str(exc), fix=fix_for("expression_failed")))
    else:
        turn.record(RunCompleted(Payload(output)))
        _drop_run_timers(turn)


def _output(turn: Turn) -> Json:
    """What the workflow says, or what its last steps put out: one step's output as it is, several by name."""
    workflow = turn.state.workflow
    if workflow.output is not None:
        return workflow.output.evaluate(turn.scope)
    outputs: dict[str, Json] = {}
    for name, plan in workflow.steps.items():
        if not plan.dependents:
            step = turn.scope(f"steps.{name}")
            outputs[name] = step["output"] if isinstance(step, dict) else None
    return next(iter(outputs.values())) if len(outputs) == 1 else outputs


def _check_published_values(turn: Turn) -> None:
    """Callers read them of the completed run, so they must have a value."""
    if turn.state.message is not None and turn.state.parent is None:
        evaluate_artifacts(turn.state.workflow, turn.scope)
        evaluate_message(turn.state.workflow, turn.scope)


def _drop_run_timers(turn: Turn) -> None:
    if turn.state.workflow.deadline is not None:
        turn.cancel_timer(DEADLINE_TIMER)
    if turn.state.cancel_requested_at is not None:
        turn.cancel_timer(CANCEL_TIMER)
