"""
How a step finds its agent when it begins, and another one when that has not accepted the call or is slow.

The candidates are looked up outside (`FindCandidates`) and come back as an input with all that is known of them, so
the choice is made here, and a repetition makes the same. What a call is, is in `agent.py`.
"""

from __future__ import annotations

from datetime import timedelta

from trunkline.clock import Instant, after
from trunkline.durations import parse_duration
from trunkline.ids import TaskId
from trunkline.machine.candidates import Candidate, Choice, ConsideredAgent, choose
from trunkline.machine.effects import FindCandidates, StartTimer, StopTask
from trunkline.machine.events import (
    StepAgentChosen,
    StepAgentSought,
    StepFailedOver,
    StepHedgeLost,
    StepHedgeWon,
    StepRequeued,
)
from trunkline.machine.inputs import CandidatesFound, HedgeDue, WaitDue
from trunkline.machine.retry import is_answered, was_sent
from trunkline.machine.state import AgentRoute, StepState, WaitingFor
from trunkline.machine.steps.failure import fail, fail_without_call
from trunkline.machine.steps.timers import agent_timer, hedge_timer, start_step_deadline
from trunkline.machine.turn import Turn
from trunkline.messages import AgentResult, StepError
from trunkline.workflow import AllowTag, CompiledStep, ExpressionError

_LOOKUP_TEXT = "The agent for the step is being chosen."
_TOO_MANY_REQUESTS = 429
# What has failed before an agent was asked fails with any of them.
_SAME_WITH_ANY_AGENT = frozenset(
    {
        "blob_missing",
        "expression_failed",
        "internal_error",
        "output_failed",
        "run_too_large",
        "secret_missing",
        "secret_unreadable",
    }
)
# Until candidates are looked up again none of which may be called: twice as long each time.
_FIRST_WAIT = timedelta(seconds=1)
_LONGEST_WAIT = timedelta(minutes=5)
_MAX_DOUBLINGS = 9
_MAX_NAMED = 5


def needs_choice(plan: CompiledStep, step: StepState) -> bool:
    """Whether the next call of the step needs an agent."""
    route = step.route
    return plan.definition.is_routed and (route is None or not route.is_settled)


def begin(turn: Turn, plan: CompiledStep, step: StepState) -> bool:
    """Looks for an agent; True: there is one, and it can be called at once."""
    definition = plan.definition
    if plan.agent_expression is None:
        _look_up(turn, plan, step)
        return False
    try:
        name = plan.agent_expression.evaluate(turn.scope_of(step))
    except ExpressionError as exc:
        fail(turn, plan, step, StepError(code="expression_failed", message=str(exc)))
        return False
    if not isinstance(name, str) or not name:
        message = f"'agent' must be the name of an agent, but {definition.agent_expression} is not a string."
        fail(turn, plan, step, StepError(code="expression_failed", message=message))
        return False
    if isinstance(definition.allow, AllowTag):
        _look_up(turn, plan, step, agent=name, tags=(definition.allow.tag,))
        return False
    if name not in (definition.allow or ()):
        _refuse(turn, plan, step, name)
        return False
    _start_deadline(turn, plan, step)
    turn.record(StepAgentChosen(step.name, name, "'agent' names it, and 'allow' lists it"))
    return True


def _start_deadline(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    if step.route is None and step.call_details.cache is None:
        start_step_deadline(turn, plan, step)


def _refuse(turn: Turn, plan: CompiledStep, step: StepState, name: str) -> None:
    allow = plan.definition.allow
    if isinstance(allow, AllowTag):
        allowed = f"only agents with the tag '{allow.tag}' are allowed"
    else:
        names = allow or ()
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        allowed = f"only {', '.join(names[:_MAX_NAMED])}{more} may be called"
    shown = name if len(name) <= 100 else f"{name[:100]}…"
    message = f"The step may not call the agent '{shown}': {allowed}."
    fail(turn, plan, step, StepError(code="agent_not_allowed", message=message))


def _look_up(
    turn: Turn,
    plan: CompiledStep,
    step: StepState,
    *,
    agent: str | None = None,
    tags: tuple[str, ...] | None = None,
) -> None:
    """Asks for candidates; a hedge is asked for elsewhere."""
    _start_deadline(turn, plan, step)
    definition, route = plan.definition, step.route or AgentRoute()
    turn.record(
        StepAgentSought(step.name, step.attempts, WaitingFor(kind="agent", text=_LOOKUP_TEXT, since=turn.now))
    )
    turn.add_effect(
        FindCandidates(
            step=step.name,
            number=route.lookups + 1,
            skill=definition.skill,
            tags=definition.tags if tags is None else tags,
            input_modes=definition.input_modes,
            select=definition.select,
            agent=agent,
            without=route.tried,
        )
    )


def look_again(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """The wait for an agent that may be called is over."""
    if step.waiting_for is None or step.waiting_for.kind != "agent":
        return
    if turn.state.paused or turn.is_ending:
        turn.record(StepRequeued(step.name))
    else:
        begin(turn, plan, step)


def take_candidates(turn: Turn, plan: CompiledStep, step: StepState, found: CandidatesFound) -> bool:
    """The candidates are known; True: one of them is to be called now."""
    route, waiting = step.route, step.waiting_for
    if route is None or waiting is None or waiting.kind != "agent" or route.lookups != found.number:
        return False
    if waiting.until is not None:
        # They have been looked at.
        return False
    if turn.state.paused or turn.is_ending:
        turn.record(StepRequeued(step.name))
        return False
    choice = choose(found.candidates, plan.definition.select)
    if choice.chosen is None:
        if found.candidates:
            _wait(turn, step, route, found, choice.considered)
        elif route.tried and step.error is not None:
            fail_without_call(turn, plan, step, step.error)
        elif plan.agent_expression is not None:
            _refuse_found(turn, plan, step)
        else:
            _fail_without_candidates(turn, plan, step)
        return False
    if plan.agent_expression is not None:
        reason = "'agent' names it, and it has the tag that 'allow' requires"
    else:
        reason = f"{plan.definition.select}: {choice.considered[0].reason}"
    turn.record(
        StepAgentChosen(
            step.name,
            choice.chosen.agent,
            reason,
            choice.considered,
            found.others,
            plan.definition.repeatable or choice.chosen.repeatable,
        )
    )
    return True


def _refuse_found(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    assert plan.agent_expression is not None, "only the agent of an expression can be refused"  # noqa: S101 - an invariant
    name = plan.agent_expression.evaluate(turn.scope_of(step))
    _refuse(turn, plan, step, str(name))


def _fail_without_candidates(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    definition = plan.definition
    what = f"the skill '{definition.skill}'"
    if definition.tags:
        what += f" and the tags {', '.join(definition.tags)}"
    if definition.input_modes:
        what += f" for {', '.join(definition.input_modes)}"
    message = f"No registered agent offers {what}."
    fail(turn, plan, step, StepError(code="no_agent_found", message=message))


def _wait(
    turn: Turn,
    step: StepState,
    route: AgentRoute,
    found: CandidatesFound,
    considered: tuple[ConsideredAgent, ...],
) -> None:
    """None of the agents may be called now: their breakers are open."""
    until = after(turn.now, min(_FIRST_WAIT * 2 ** min(route.waits, _MAX_DOUBLINGS), _LONGEST_WAIT))
    retry_at = _first_retry(found.candidates)
    if retry_at is not None:
        until = Instant(max(after(turn.now, _FIRST_WAIT), min(until, retry_at)))
    named = "; ".join(f"{each.agent}: {each.reason}" for each in considered[:_MAX_NAMED])
    text = f"No agent may be called at present ({named})."
    waiting = WaitingFor(kind="agent", text=text, until=until, since=turn.now)
    turn.record(StepAgentSought(step.name, step.attempts, waiting, is_lookup=False))
    turn.add_effect(StartTimer(agent_timer(step), until, WaitDue(step.name, step.attempts)))


def _first_retry(candidates: tuple[Candidate, ...]) -> Instant | None:
    times = [each.retry_at for each in candidates if each.retry_at is not None]
    return min(times, default=None)


# --- another agent, because the one before has not accepted the call


def take_result(turn: Turn, plan: CompiledStep, step: StepState, result: AgentResult) -> bool:
    """True: what follows from the result is what would follow without a choice."""
    if step.route is None:
        return True
    if not _settle_race(turn, step, result):
        return False
    if result.status in {"working", "progress"}:
        return True
    _stop_hedging(turn, plan, step)
    return result.error is None or not _fail_over(turn, plan, step, result, result.error)


def _fail_over(
    turn: Turn, plan: CompiledStep, step: StepState, result: AgentResult, error: StepError
) -> bool:
    """Tries the next agent after a call that has failed, if nothing can be done twice by it; False: it does not."""
    route = step.route
    if plan.definition.skill is None or route is None or step.status != "RUNNING" or step.reply is not None:
        return False
    if turn.is_ending or result.attempt != step.attempts or not _may_go_elsewhere(plan, route, error):
        return False
    if not _has_others(route):
        return False
    error.step, error.attempt = step.name, result.attempt
    turn.record(StepFailedOver(step.name, result.attempt, route.agent, error))
    _look_up(turn, plan, step)
    return True


def _may_go_elsewhere(plan: CompiledStep, route: AgentRoute, error: StepError) -> bool:
    if error.code in _SAME_WITH_ANY_AGENT:
        return False
    if plan.definition.repeatable and not is_answered(error):
        return True
    refused = error.rejected or error.http_status == _TOO_MANY_REQUESTS
    return not (error.doubtful or route.is_doubtful) and (refused or not was_sent(error))


def _has_others(route: AgentRoute) -> bool:
    choice = route.choice
    return choice is not None and (
        choice.others > 0
        or any(each.agent not in route.in_use and each.status != "breaker_open" for each in choice.candidates)
    )


# --- another agent at the same time, because the call is slow


def start_hedge_timer(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """After a call has begun: when the next one may, if the step has one."""
    hedge, route = plan.definition.hedge, step.route
    if hedge is None or route is None or not route.is_repeatable or step.reply is not None:
        return
    if 1 + len(route.hedges) < hedge.max:
        due = after(turn.now, parse_duration(hedge.after))
        item = HedgeDue(step.name, step.attempts, route.last_number)
        turn.add_effect(StartTimer(hedge_timer(step, route.last_number), due, item))


def stop_all(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """Stops the calls that the step has in addition to its own, and begins no other."""
    _stop_hedging(turn, plan, step)
    for hedge in () if step.route is None else step.route.hedges:
        turn.add_effect(StopTask(turn.task_id_of(step, hedge.number), step.attempts, hedge.agent))


def _stop_hedging(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    if plan.definition.hedge is not None and step.route is not None:
        turn.cancel_timer(hedge_timer(step, step.route.last_number))


def look_for_hedge(turn: Turn, plan: CompiledStep, step: StepState, due: HedgeDue) -> None:
    route = step.route
    if route is None or due.attempt != step.attempts or not _may_hedge(turn, plan, step, due.number):
        return
    definition = plan.definition
    turn.add_effect(
        FindCandidates(
            step=step.name,
            number=due.number,
            skill=definition.skill,
            tags=definition.tags,
            input_modes=definition.input_modes,
            select=definition.select,
            without=route.in_use,
            hedge=True,
            repeatable=not definition.repeatable,
        )
    )


def _may_hedge(turn: Turn, plan: CompiledStep, step: StepState, number: int) -> bool:
    route, hedge = step.route, plan.definition.hedge
    return (
        step.status == "RUNNING"
        and route is not None
        and hedge is not None
        and route.last_number == number
        and 1 + len(route.hedges) < hedge.max
        and not (turn.state.paused or turn.is_ending)
    )


def choose_hedge(turn: Turn, plan: CompiledStep, step: StepState, found: CandidatesFound) -> Choice | None:
    """The agent that is called in addition; None: none. Only one that has nothing else to do is worth it."""
    if not _may_hedge(turn, plan, step, found.number):
        return None
    choice = choose(found.candidates, plan.definition.select)
    return choice if choice.chosen is not None and choice.chosen.status == "available" else None


def _settle_race(turn: Turn, step: StepState, result: AgentResult) -> bool:
    """
    One of several calls of the step has brought something; True: it counts as if it were the only one.

    What is no result ends that call alone as long as there is another one.
    """
    route = step.route
    if route is None or not route.hedges:
        return True
    is_first = result.task_id == turn.task_id_of(step)
    calls = {turn.task_id_of(step): route.agent}
    calls |= {turn.task_id_of(step, hedge.number): hedge.agent for hedge in route.hedges}
    agent = calls.pop(TaskId(result.task_id))
    match result.status:
        case "progress":
            return True
        case "working":
            return is_first
        case "cancelled" if turn.state.cancel_requested_at is not None:
            return True
        case "success" if not result.output_errors:
            for task, name in calls.items():
                turn.add_effect(StopTask(task, step.attempts, name))
            turn.record(StepHedgeWon(step.name, step.attempts, agent, tuple(calls.values())))
            return True
        case _:
            if result.status == "interrupted":
                # Its question is not asked while another agent may do without.
                turn.add_effect(StopTask(result.task_id, step.attempts, agent))
            turn.record(StepHedgeLost(step.name, step.attempts, agent, _why_lost(result)))
            return False


def _why_lost(result: AgentResult) -> str:
    match result.status:
        case "interrupted":
            return "The agent asked a question."
        case "success":
            return "The output does not match output_schema."
        case "cancelled":
            return "The call was stopped."
        case _:
            return "Its outcome is unknown." if result.error is None else result.error.message
