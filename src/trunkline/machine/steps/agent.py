"""
The step kind that calls an agent: how it begins, and what an answer means for it.

Knows no other step kind. It records events and adds effects through the `Turn` that it is given; how a step fails is in
`failure.py`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

import msgspec

from trunkline.clock import after
from trunkline.ids import task_id
from trunkline.jsontypes import Json, decode
from trunkline.machine.candidates import Choice
from trunkline.machine.effects import DispatchTask, StartTimer, StopTask
from trunkline.machine.events import (
    Payload,
    StepCancelled,
    StepCompleted,
    StepHedged,
    StepOutcomeUnknown,
    StepProgress,
    StepStarted,
    StepWaiting,
    StepWorking,
)
from trunkline.machine.evolve import has_item_contexts
from trunkline.machine.inputs import CandidatesFound, ReplyOverdue
from trunkline.machine.retry import is_answered
from trunkline.machine.state import HumanTask, StepState, WaitingFor
from trunkline.machine.steps import human_tasks, repair, routing
from trunkline.machine.steps.actions import read_input
from trunkline.machine.steps.failure import fail, fail_attempt, outcome_unknown
from trunkline.machine.steps.timers import cancel_wait_timer, reply_timer, start_step_deadline
from trunkline.machine.turn import Turn
from trunkline.messages import (
    AgentResult,
    AgentTask,
    CallerMessage,
    Question,
    ReplyMessage,
    StepError,
    decode_caller_message,
)
from trunkline.workflow import CompiledStep, ExpressionError, format_duration

_replies: msgspec.json.Decoder[ReplyMessage] = msgspec.json.Decoder(ReplyMessage)


def begin(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """Calls the agent, for the first time or again."""
    text = read_input(turn, plan, step)
    if text is None:
        return
    if plan.questions is not None and _question_rules(turn, plan, step) is None:
        return
    if plan.definition.is_routed and routing.needs_choice(plan, step) and not routing.begin(turn, plan, step):
        return
    _call(turn, plan, step, text)


def take_candidates(turn: Turn, plan: CompiledStep, step: StepState, found: CandidatesFound) -> None:
    """The agents that the step may call are known."""
    if found.hedge:
        choice = routing.choose_hedge(turn, plan, step, found)
        if choice is not None:
            _call_in_addition(turn, plan, step, found, choice)
    elif routing.take_candidates(turn, plan, step, found):
        text = read_input(turn, plan, step)
        if text is not None:
            _call(turn, plan, step, text)


def _call(turn: Turn, plan: CompiledStep, step: StepState, text: bytes) -> None:
    definition, route = plan.definition, step.route
    # A reply goes on with the same attempt: a conversation does not use attempts up. Nor does an agent that has not
    # accepted the call.
    replying = step.has_unsent_reply
    attempt = step.attempts if replying or (route is not None and route.tried) else step.attempts + 1
    agent, number = (plan.agent, 0) if route is None else (route.agent, route.number)
    task = _task(turn, plan, step, text, attempt, agent, number)
    if attempt == 1 and not replying and route is None and step.call_details.cache is None:
        start_step_deadline(turn, plan, step)
    turn.record(StepStarted(step.name, attempt, task.task_id, agent, Payload(text)))
    turn.add_effect(DispatchTask(task))
    if definition.hedge is not None:
        routing.start_hedge_timer(turn, plan, step)


def _call_in_addition(
    turn: Turn, plan: CompiledStep, step: StepState, found: CandidatesFound, choice: Choice
) -> None:
    """Gives another agent the same work at the same time."""
    route, chosen = step.route, choice.chosen
    assert route is not None, "only a step with a route is hedged"  # noqa: S101 - an invariant
    assert chosen is not None, "there is an agent to call"  # noqa: S101 - as above
    task = _task(turn, plan, step, step.input or b"null", step.attempts, chosen.agent, route.numbers)
    turn.record(
        StepHedged(
            step.name,
            step.attempts,
            chosen.agent,
            task.task_id,
            f"{plan.definition.select}: {choice.considered[0].reason}",
            choice.considered,
            found.others,
        )
    )
    turn.add_effect(DispatchTask(task))
    routing.start_hedge_timer(turn, plan, step)


def _task(
    turn: Turn, plan: CompiledStep, step: StepState, text: bytes, attempt: int, agent: str, number: int
) -> AgentTask:
    definition, route = plan.definition, step.route
    replying = step.has_unsent_reply
    given, message = _content(turn, plan, step, text)
    task = AgentTask(
        task_id=task_id(turn.state.id, step.name, step.answered_failures, step.replies + replying, number),
        input_data=given,
        correlation_id=turn.state.correlation_id,
        run_id=turn.state.id,
        step=step.name,
        attempt=attempt,
        agent=agent,
        timeout_ms=None if definition.timeout is None else round(definition.timeout.total_seconds() * 1000),
        at_most_once=definition.delivery == "at_most_once",
        context_id=_context(turn, plan, step, agent),
        # Not of another agent: it has a task of its own.
        doubtful=step.error is not None and step.error.doubtful and not (route is not None and route.tried),
        remote_task_id=step.remote_task_id if step.reply is not None else None,
        trace=turn.state.trace,
        routes=turn.state.routing_version,
        message=message,
        schema_of=turn.state.workflow_key if plan.output_schema is not None else None,
        block=turn.state.block,
    )
    if plan.told_secrets:
        _add_secret_names(task, plan, step)
    return task


def _content(
    turn: Turn, plan: CompiledStep, step: StepState, text: bytes
) -> tuple[Json, CallerMessage | None]:
    """What the agent gets: an input or a reply, and the caller's message if it gets that instead."""
    forwards = plan.definition.message == "caller"
    if step.reply is None:
        stored = turn.state.message if forwards else None
        return decode(text), None if stored is None else decode_caller_message(stored)
    reply = _replies.decode(step.reply)
    given = msgspec.to_builtins(msgspec.structs.replace(reply, message=None))
    return given, reply.message if forwards else None


def _add_secret_names(task: AgentTask, plan: CompiledStep, step: StepState) -> None:
    # A reply is a person's: what looks like a secret in it is data, as everywhere but in the definition.
    if step.reply is None:
        task.secrets = plan.secrets
    sent = task.secrets.values()
    task.told_secrets = [name for name in plan.told_secrets if name not in sent]


def _context(turn: Turn, plan: CompiledStep, step: StepState, agent: str) -> str | None:
    if step.route is not None and step.route.agent != agent:
        # The step's own conversation is with another agent.
        return turn.state.contexts.get(agent) if plan.definition.context in {"run", "caller"} else None
    if step.reply is not None:
        return step.context_id
    match plan.definition.context:
        case "run":
            return step.context_id if has_item_contexts(plan) else turn.state.contexts.get(agent)
        case "step":
            return step.context_id
        case "none":
            return None
        case "caller":
            return step.context_id or turn.state.contexts.get(agent) or _callers_context(turn)


def _callers_context(turn: Turn) -> str | None:
    """The one that the caller named; the agent may know it."""
    if turn.state.message is None:
        return None
    message = decode_caller_message(turn.state.message)
    return message.context_id if message.chose_context else None


def apply_result(turn: Turn, plan: CompiledStep, step: StepState, result: AgentResult) -> None:
    if not _is_current(turn, step, result) or not routing.take_result(turn, plan, step, result):
        return
    match result.status:
        case "success" if result.output_errors:
            repair.refuse_output(turn, plan, step, result)
        case "success":
            # A late answer ends the wait for the next attempt, or for a person.
            cancel_wait_timer(turn, step)
            if result.attempt != step.attempts:
                turn.add_effect(StopTask(result.task_id, step.attempts, step.agent))
            turn.record(
                StepCompleted(
                    step.name,
                    result.attempt,
                    Payload(bytes(result.output)),
                    result.protocol,
                    result.context_id,
                    result.remote_task_id,
                    tuple(result.warnings),
                )
            )
        case "error":
            # A person may be finding out what became of the call.
            cancel_wait_timer(turn, step)
            assert result.error is not None, "an error result carries its error"  # noqa: S101 - the codec's invariant
            fail_attempt(turn, plan, step, result, result.error)
        case "working":
            if step.waiting_for is None and result.remote_task_id is not None:
                turn.record(
                    StepWorking(
                        step.name, result.attempt, result.remote_task_id, result.protocol, result.context_id
                    )
                )
        case "progress":
            turn.record(StepProgress(step.name, result.attempt, tuple(result.progress)))
        case "interrupted":
            assert result.question is not None, "an interrupted result carries its question"  # noqa: S101 - as above
            _ask_person(turn, plan, step, result, result.question)
        case "cancelled":
            _note_stopped(turn, plan, step)
        case "unknown":
            turn.record(
                StepOutcomeUnknown(step.name, result.attempt, outcome_unknown(turn, step, result.error))
            )
        case _:
            assert_never(result.status)


def _ask_person(
    turn: Turn, plan: CompiledStep, step: StepState, result: AgentResult, question: Question
) -> None:
    rules = None
    if plan.questions is not None:
        rules = _question_rules(turn, plan, step)
        if rules is None:
            turn.add_effect(StopTask(result.task_id, step.attempts))
            return
    timeout = plan.definition.reply_timeout or turn.reply_timeout
    until = None if timeout is None else after(turn.now, timeout)
    waiting = WaitingFor(
        kind=question.kind,
        text=question.text,
        until=until,
        data=question.data,
        since=turn.now,
        human_task=rules,
    )
    turn.record(
        StepWaiting(
            step.name, result.attempt, waiting, result.protocol, result.context_id, result.remote_task_id
        )
    )
    if until is not None:
        overdue = ReplyOverdue(step.name, step.attempts, step.replies)
        turn.add_effect(StartTimer(reply_timer(step), until, overdue))
    if rules is not None:
        human_tasks.begin(turn, step)


def _question_rules(turn: Turn, plan: CompiledStep, step: StepState) -> HumanTask | None:
    """
    Whose the agent's questions are; None: the step has failed by it.

    Evaluated before each call, too, so that a mistake in the rules is found before the agent has done any work.
    """
    rules = plan.definition.questions
    if rules is None or plan.questions is None:
        return None
    try:
        value = plan.questions.evaluate(turn.scope_of(step))
        task = human_tasks.read_rules(value if isinstance(value, dict) else {}, turn.now)
    except (ExpressionError, ValueError) as exc:
        message = f"The rules for the agent's questions are wrong: {exc}."
        fail(turn, plan, step, StepError(code="expression_failed", message=message))
        return None
    return msgspec.structs.replace(task, only_assignees=rules.only_assignees)


def fail_unanswered(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """The question was not answered in time: the step fails without a retry, and the agent is asked to stop."""
    waiting = step.waiting_for
    assert waiting is not None, "a step that asks is waiting"  # noqa: S101 - `asks` has been true
    assert waiting.since is not None, "a question with a deadline has a start"  # noqa: S101 - as above
    assert waiting.until is not None, "the timer is set only for a question with a deadline"  # noqa: S101 - as above
    timeout = format_duration(timedelta(microseconds=waiting.until - waiting.since))
    error = StepError(
        code="reply_timed_out",
        message=f"The agent's question was not answered within {timeout}.",
        attempt=step.attempts,
    )
    turn.add_effect(StopTask(turn.task_id_of(step), step.attempts, step.agent))
    fail(turn, plan, step, error)


def stop_call(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """Stops the agent's work and cancels its timers."""
    if step.route is not None:
        routing.stop_all(turn, plan, step)
    cancel_wait_timer(turn, step)
    backs_off = step.status == "WAITING" and not step.has_open_question
    if not backs_off and (step.status in {"RUNNING", "WAITING"} or step.has_unsent_reply):
        turn.add_effect(StopTask(turn.task_id_of(step), step.attempts, step.agent))


def _note_stopped(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    reason = "The call was stopped."
    if plan.compensates is None:
        turn.record(StepCancelled(step.name, reason))
    else:
        # Only a person decides that something is not undone.
        fail(turn, plan, step, StepError(code="agent_reported_error", message=reason))


def _is_current(turn: Turn, step: StepState, result: AgentResult) -> bool:
    """An answer to another task than the present one is history; to an earlier attempt at it, good news only."""
    if step.is_final:
        return False
    if result.task_id != turn.task_id_of(step):
        return _is_hedge(turn, step, result)
    if step.status == "OUTCOME_UNKNOWN":
        return result.status == "success" or (
            result.status == "error" and result.error is not None and is_answered(result.error)
        )
    if step.status == "RUNNING" and result.attempt == step.attempts:
        return True
    return result.status == "success"


def _is_hedge(turn: Turn, step: StepState, result: AgentResult) -> bool:
    """Whether it is the result of a call that the step has in addition to its own."""
    if step.route is None or step.status != "RUNNING" or result.attempt != step.attempts:
        return False
    return any(result.task_id == turn.task_id_of(step, hedge.number) for hedge in step.route.hedges)
