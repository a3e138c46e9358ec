"""Starts and stops the work of a step or an item, whatever its kind: an agent's task, a child run or an action."""

from __future__ import annotations

from typing import assert_never

from trunkline.machine import output_cache
from trunkline.machine.inputs import OutputLookedUp
from trunkline.machine.state import StepState
from trunkline.machine.steps import actions, agent, ask, child, failure, routing, sleep, timers, wait_for
from trunkline.machine.turn import Turn
from trunkline.messages import StepError
from trunkline.workflow import CompiledStep, format_duration


def begin(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """For the first time or again."""
    if output_cache.must_ask(plan, step):
        output_cache.ask(turn, plan, step)
    else:
        begin_work(turn, plan, step)


def begin_work(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    match plan.kind:
        case "agent":
            agent.begin(turn, plan, step)
        case "workflow" | "steps":
            child.begin(turn, plan, step)
        case "set":
            actions.set_values(turn, plan, step)
        case "sleep":
            sleep.begin(turn, plan, step)
        case "wait_for":
            wait_for.begin(turn, plan, step)
        case "ask":
            ask.begin(turn, plan, step)
        case _:
            assert_never(plan.kind)


def stop(turn: Turn, step: StepState) -> None:
    """Stops the work and cancels its timers."""
    if step.name in turn.state.for_each:
        return
    plan = turn.state.workflow.plan(step.name)
    match plan.kind:
        case "agent":
            agent.stop_call(turn, plan, step)
        case "workflow" | "steps":
            child.stop(turn, step)
        case "set" | "sleep" | "wait_for" | "ask":
            timers.cancel_wait_timer(turn, step)
        case _:
            assert_never(plan.kind)


def take_output(turn: Turn, plan: CompiledStep, step: StepState, found: OutputLookedUp) -> None:
    """The cache has answered."""
    if output_cache.take(turn, step, found):
        begin_work(turn, plan, step)


def end_wait(turn: Turn, plan: CompiledStep, step: StepState, attempt: int) -> None:
    """The time has come for which, or until which, the step's action waited in this attempt."""
    if step.status != "WAITING" or step.attempts != attempt:
        return
    if step.waiting_for is not None and step.waiting_for.kind == "cache":
        output_cache.ask_again(turn, step)
        return
    match plan.kind:
        case "sleep":
            sleep.end_wait(turn, step)
        case "wait_for":
            wait_for.end_wait(turn, plan, step)
        case "ask":
            ask.end_wait(turn, plan, step)
        case "steps":
            child.begin_round(turn, plan, step)
        case "agent":
            routing.look_again(turn, plan, step)
        case "workflow" | "set":
            pass
        case _:
            assert_never(plan.kind)


def pass_deadline(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """The step has had all the time that it may take."""
    deadline = plan.definition.deadline
    if step.is_final or step.status == "OUTCOME_UNKNOWN" or step.waits_for_decision or deadline is None:
        return
    error = StepError(
        code="deadline_exceeded",
        message=f"The step did not finish within its deadline of {format_duration(deadline)}.",
        attempt=step.attempts,
    )
    stop(turn, step)
    failure.fail_at_deadline(turn, plan, step, error)
