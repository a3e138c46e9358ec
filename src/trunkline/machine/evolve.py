"""
How a fact changes the state: the only place that does.

Every change costs the same however long the run is: counters are updated, never recounted. Rebuilding from rows
(`restore`) is the one exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import msgspec

from trunkline.clock import Instant
from trunkline.jsontypes import Json, decode
from trunkline.machine.compensation_order import steps_to_compensate
from trunkline.machine.events import (
    AnyRunEvent,
    CacheEvent,
    Event,
    RouteEvent,
    RunCancelled,
    RunCancelRequested,
    RunCompensated,
    RunCompensating,
    RunCompleted,
    RunContinued,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
    RunWaiting,
    StepAgentChosen,
    StepAgentSought,
    StepAnswered,
    StepBegan,
    StepCancelled,
    StepChildStarted,
    StepClaimed,
    StepCompensationFailed,
    StepCompensationRetried,
    StepCompleted,
    StepContinued,
    StepEscalated,
    StepEventBase,
    StepEventTaken,
    StepFailed,
    StepFailedOver,
    StepFannedOut,
    StepFromCache,
    StepHedged,
    StepHedgeLost,
    StepHedgeWon,
    StepInputGiven,
    StepKept,
    StepOutcomeResolved,
    StepOutcomeUnknown,
    StepOutputClaimed,
    StepOutputSought,
    StepProgress,
    StepReleased,
    StepRepairRequested,
    StepReplied,
    StepRequeued,
    StepRetryScheduled,
    StepRoundEnded,
    StepSkipped,
    StepStarted,
    StepWaiting,
    StepWorking,
    WorkEvent,
)
from trunkline.machine.state import (
    AgentRoute,
    CacheUse,
    Compensation,
    ForEachState,
    HedgeCall,
    RunState,
    StepState,
    StepStatus,
    WaitingFor,
)
from trunkline.machine.step_changes import (
    change_cache_use,
    change_route,
    evolve_human_task,
    leave_cache,
    release_agent,
    switch_agent,
)
from trunkline.messages import ERROR_CODES, StepError, fix_for
from trunkline.workflow import CompiledStep, compensated_step, item_name, step_of_item

_items: msgspec.json.Decoder[list[Json]] = msgspec.json.Decoder(list[Json])

_ROUND_TEXT = "The next round of the step starts after its delay."
_REMOTE_TEXT = "The agent is working on the task and is polled for the result."


def step_of(state: RunState, name: str) -> StepState:
    """The step's state, made when it is first touched."""
    step = state.steps.get(name)
    if step is None:
        plan = state.workflow.steps.get(name)
        step = StepState(name=name, remaining=0 if plan is None else count_waits(plan))
        state.steps[name] = step
    return step


def count_waits(plan: CompiledStep) -> int:
    """For how many ends a step waits: one for each need, and one for all that it joins together."""
    return len(plan.needs) if plan.join is None else len(plan.needs) - len(plan.join.branches) + 1


def restore(state: RunState, steps: Iterable[StepState]) -> None:
    """Puts stored steps into a state read at the same version, and counts what is not stored."""
    state.steps = {step.name: step for step in steps}
    state.step_bytes = sum(step.size_bytes for step in state.steps.values())
    state.unfinished = len(state.workflow.steps)
    for step in state.steps.values():
        plan = state.workflow.steps.get(step.name)
        step.remaining = 0 if plan is None else count_waits(plan)
        step.joined = step.lost = 0
    for step in list(state.steps.values()):
        if step.status == "RUNNING" and _has_items(state, step.name):
            _start_items(state, step)
        _count(state, step, 1)
        if step.is_final and step.name in state.workflow.steps:
            state.unfinished -= 1
            for dependent in state.workflow.steps[step.name].dependents:
                _notify_dependent(state, step, dependent)
            if step.status == "FAILED" and not state.workflow.steps[step.name].handles_failure:
                _record_failure(state, step)
    if state.is_compensating:
        _prepare_compensation(state)
    elif state.status != "PENDING":
        state.ready.extend(name for name in state.workflow.steps if _is_ready(state, name))
        state.ready.extend(
            name
            for name, step in state.steps.items()
            if step.status == "PENDING" and step.has_begun and step_of_item(name) in state.for_each
        )
        for name in state.for_each:
            _release_items(state, name)


def _prepare_compensation(state: RunState) -> None:
    """Nothing else goes on in the run."""
    state.ready.clear()
    state.decided.clear()
    state.to_compensate.extend(steps_to_compensate(state))


def _has_items(state: RunState, name: str) -> bool:
    plan = state.workflow.steps.get(name)
    return plan is not None and plan.for_each is not None


def _start_items(state: RunState, step: StepState) -> None:
    """From the list that is the step's input, and the items that there are already."""
    iteration = state.for_each[step.name] = ForEachState(_items.decode(step.input or b"[]"))
    for index in range(len(iteration.items)):
        item = state.steps.get(item_name(step.name, index))
        if item is not None:
            iteration.finished += item.is_final
            iteration.active += not item.is_final
            iteration.failed += item.status == "FAILED"
    _note_items_finished(state, step.name, iteration)


def _release_items(state: RunState, name: str) -> None:
    """Lets as many items begin as may be worked on at once."""
    iteration, loop = state.for_each[name], state.workflow.steps[name].for_each
    assert loop is not None, "only a loop has items"  # noqa: S101 - an invariant
    while iteration.next_index < len(iteration.items) and iteration.active < loop.definition.at_once:
        item = item_name(name, iteration.next_index)
        iteration.next_index += 1
        if item not in state.steps:
            iteration.active += 1
            state.ready.append(item)


def _note_items_finished(state: RunState, name: str, iteration: ForEachState) -> None:
    loop = state.workflow.steps[name].for_each
    assert loop is not None, "only a loop has items"  # noqa: S101 - as above
    if iteration.finished == len(iteration.items) or (
        iteration.failed and loop.definition.on_error == "stop"
    ):
        state.decided.append(name)


def _finish_item(state: RunState, item: StepState) -> None:
    name = step_of_item(item.name)
    iteration = state.for_each.get(name)
    if iteration is not None:
        iteration.active -= 1
        iteration.finished += 1
        iteration.failed += item.status == "FAILED"
        _note_items_finished(state, name, iteration)
        _release_items(state, name)


def _record_failure(state: RunState, step: StepState) -> None:
    # By stored values: reading the steps again, in any order, must give the same failure.
    first_failed = (
        None if state.failure is None or state.failure.step is None else state.steps[state.failure.step]
    )
    if first_failed is None or _end_order(state, step) < _end_order(state, first_failed):
        state.failure = step.error


def _end_order(state: RunState, step: StepState) -> tuple[int, int]:
    return step.finished_at or 0, state.workflow.steps[step.name].index


def _is_ready(state: RunState, name: str) -> bool:
    step = state.steps.get(name)
    if step is None:
        return not state.workflow.steps[name].needs
    return step.status == "PENDING" and step.remaining == 0


def _count(state: RunState, step: StepState, change: int) -> None:
    if step.name in state.for_each:
        # Its items are counted.
        return
    match step.status:
        case "RUNNING":
            state.in_flight += change
        case "WAITING":
            if step.waiting_for is not None and step.waiting_for.kind in {"retry", "agent", "cache"}:
                state.retrying += change
            elif step.waiting_for is not None and step.waiting_for.is_for_time_or_event:
                state.waiting_for_time_or_event += change
            else:
                state.awaiting_person += change
        case "OUTCOME_UNKNOWN":
            state.awaiting_person += change
        case "PENDING" | "COMPLETED" | "FAILED" | "SKIPPED" | "CANCELLED":
            pass


def _set_status(
    state: RunState, step: StepState, status: StepStatus, waiting_for: WaitingFor | None = None
) -> None:
    _count(state, step, -1)
    step.status = status
    step.waiting_for = waiting_for
    _count(state, step, 1)


def _finish(state: RunState, step: StepState, status: StepStatus, at: Instant) -> None:
    _set_status(state, step, status)
    step.finished_at = at
    step.reply = None
    if compensated_step(step.name) is not None:
        # They run one after another: it is the first.
        state.to_compensate.popleft()
        return
    if step.name not in state.workflow.steps:
        _finish_item(state, step)
        return
    if state.for_each.pop(step.name, None) is not None and not state.for_each:
        state.decoded.clear()
    state.unfinished -= 1
    for name in state.workflow.steps[step.name].dependents:
        dependent = step_of(state, name)
        if (
            _notify_dependent(state, step, name)
            and dependent.remaining == 0
            and dependent.status == "PENDING"
        ):
            state.ready.append(name)


def _notify_dependent(state: RunState, step: StepState, name: str) -> bool:
    """A step has ended that this one needs; True when it waits for less now."""
    join, dependent = state.workflow.steps[name].join, step_of(state, name)
    if join is not None and step.name in join.branches:
        if step.status == "COMPLETED":
            dependent.joined += 1
            decides = dependent.joined == join.quorum
        else:
            dependent.lost += 1
            decides = dependent.lost == len(join.branches) - join.quorum + 1
        if not decides:
            return False
        state.decided.append(name)
    dependent.remaining -= 1
    return True


def _record_agent_ids(
    state: RunState,
    step: StepState,
    *,
    protocol: str | None,
    context_id: str | None = None,
    remote_task_id: str | None = None,
) -> None:
    if protocol is not None:
        step.protocol = protocol
    if remote_task_id is not None:
        step.remote_task_id = remote_task_id
    if context_id is not None:
        step.context_id = context_id
        plan = state.workflow.plan(step.name)
        if plan.definition.context in {"run", "caller"} and not has_item_contexts(plan):
            state.contexts[plan.agent if step.route is None else step.route.agent] = context_id


def has_item_contexts(plan: CompiledStep) -> bool:
    """Items that are worked on side by side have a conversation each."""
    return plan.for_each is not None and plan.for_each.definition.mode == "parallel"


def evolve(state: RunState, event: Event, at: Instant) -> StepState | None:
    """Applies the event; the step that it changed, if any."""
    state.seq += 1
    if not isinstance(event, StepEventBase):
        _evolve_run(state, event, at)
        return None
    if isinstance(event, StepProgress):
        # For those who watch: it changes nothing.
        return None
    step = step_of(state, event.step)
    before = step.size_bytes
    if isinstance(event, RouteEvent):
        _evolve_route(state, step, event)
    elif isinstance(event, CacheEvent):
        _evolve_cache(state, step, event, at)
    else:
        _evolve_step(state, step, event, at)
        leave_cache(step, event)
    state.step_bytes += step.size_bytes - before
    return step


def _evolve_run(  # noqa: C901, PLR0912 - one case for each event
    state: RunState, event: AnyRunEvent, at: Instant
) -> None:
    match event:
        case RunStarted():
            state.status = "RUNNING"
            state.started_at = at
            state.unfinished = len(state.workflow.steps)
            state.ready.extend(name for name, step in state.workflow.steps.items() if not step.needs)
        case RunPaused():
            state.paused = True
            state.status = "PAUSED"
        case RunResumed():
            state.paused = False
            state.status = "COMPENSATING" if state.is_compensating else "RUNNING"
        case RunCancelRequested(reason):
            state.cancel_requested_at = at
            if reason is not None:
                state.error = StepError(code="not_started", message=reason, fix=fix_for("not_started"))
            state.paused = False
            state.status = "RUNNING"
        case RunWaiting():
            state.status = "WAITING"
        case RunContinued():
            state.status = "RUNNING"
        case RunCompleted(output):
            state.status = "COMPLETED"
            state.output = output.text
            state.finished_at = at
        case RunFailed(error):
            state.status = "FAILED"
            state.error = error
            state.finished_at = at
        case RunCancelled():
            state.status = "CANCELLED"
            state.finished_at = at
        case RunCompensating():
            state.status = "COMPENSATING"
            state.error = event.error or state.error
            state.finished_at = None
            state.compensation = Compensation(
                failure=event.failure, ends=event.ends, reopened=event.reopened, asked_by=event.asked_by
            )
            _prepare_compensation(state)
        case RunCompensated(status):
            compensation = state.compensation
            assert compensation is not None, "it has begun"  # noqa: S101 - an invariant
            state.compensation = msgspec.structs.replace(compensation, status=status)
            state.to_compensate.clear()
            if compensation.reopened:
                state.status = compensation.ends
                state.finished_at = at
        case _:
            assert_never(event)


def _prepare_round(state: RunState, step: StepState, ended: StepRoundEnded, at: Instant) -> None:
    step.attempts = 0
    step.input = ended.input.text
    step.call_details = msgspec.structs.replace(step.call_details, round=ended.round + 1)
    if ended.due is None:
        _set_status(state, step, "PENDING")
        state.ready.append(step.name)
    else:
        waiting = WaitingFor(kind="time", text=_ROUND_TEXT, until=ended.due, since=at)
        _set_status(state, step, "WAITING", waiting)


def _evolve_route(state: RunState, step: StepState, event: RouteEvent) -> None:
    route = step.route or AgentRoute()
    match event:
        case StepAgentSought(_, _, waiting_for, is_lookup):
            lookups = route.lookups + is_lookup
            change_route(step, lookups=lookups, waits=route.waits + (not is_lookup), is_settled=False)
            _set_status(state, step, "WAITING", waiting_for)
        case StepAgentChosen():
            switch_agent(step, event.agent, route.numbers, ())
            change_route(
                step,
                numbers=route.numbers + 1,
                is_settled=True,
                is_doubtful=False,
                is_repeatable=event.repeatable,
                waits=0,
                choice=event.choice,
            )
        case StepFailedOver(_, _, agent, error):
            change_route(step, is_settled=False, tried=(*route.tried, agent))
            step.error = error
            _set_status(state, step, "PENDING")
        case StepHedged(_, _, agent):
            hedges = (*route.hedges, HedgeCall(agent, route.numbers))
            change_route(step, hedges=hedges, numbers=route.numbers + 1)
        case StepHedgeLost(_, _, agent):
            others = tuple(each for each in route.hedges if each.agent != agent)
            if agent == route.agent:
                first, *others = route.hedges
                switch_agent(step, first.agent, first.number, tuple(others))
                _set_status(state, step, "RUNNING")
            change_route(step, hedges=tuple(others), tried=(*route.tried, agent))
        case StepHedgeWon(_, _, agent):
            numbers = {each.agent: each.number for each in route.hedges}
            switch_agent(step, agent, numbers.get(agent, route.number), ())
        case _:
            assert_never(event)


def _evolve_cache(state: RunState, step: StepState, event: CacheEvent, at: Instant) -> None:
    match event:
        case StepOutputSought(_, waiting_for, digest, number):
            change_cache_use(step, CacheUse(digest=digest, number=number))
            _set_status(state, step, "WAITING", waiting_for)
        case StepOutputClaimed(_, leads):
            use = step.call_details.cache
            assert use is not None, "only a step that has asked gets an answer"  # noqa: S101 - an invariant
            change_cache_use(step, msgspec.structs.replace(use, stage="leading" if leads else "alone"))
        case StepFromCache(_, output, run_id, origin, stored_at):
            use = step.call_details.cache
            assert use is not None, "only a step that has asked gets an output"  # noqa: S101 - as above
            used = msgspec.structs.replace(use, stage="used", run_id=run_id, step=origin, at=stored_at)
            change_cache_use(step, used)
            step.output = output.text
            step.started_at = at
            _finish(state, step, "COMPLETED", at)
        case _:
            assert_never(event)


def _evolve_compensation(
    state: RunState, step: StepState, event: StepCompensationFailed | StepCompensationRetried, at: Instant
) -> None:
    match event:
        case StepCompensationFailed(_, _, error, protocol, context):
            _record_agent_ids(state, step, protocol=protocol, context_id=context)
            step.error = error
            step.reply = None
            waiting = WaitingFor(kind="compensation", text=error.message, since=at)
            _set_status(state, step, "WAITING", waiting)
        case StepCompensationRetried():
            if step.error is not None and ERROR_CODES[step.error.code].answered:
                step.answered_failures += 1
                step.remote_task_id = None
            _set_status(state, step, "PENDING")


def _evolve_step(  # noqa: C901, PLR0912, PLR0915 - one case for each event
    state: RunState, step: StepState, event: WorkEvent, at: Instant
) -> None:
    match event:
        case StepKept(_, output):
            step.output = output.text
            _finish(state, step, "COMPLETED", at)
        case StepInputGiven(_, payload):
            step.input = payload.text
        case (
            StepStarted(_, attempt, _, _, payload)
            | StepChildStarted(_, attempt, _, _, payload)
            | StepBegan(_, attempt, _, payload)
        ):
            if step.has_unsent_reply:
                step.replies += 1
            _set_status(state, step, "RUNNING")
            step.attempts = attempt
            step.input = payload.text
            step.error = None
            if isinstance(event, StepChildStarted) and event.round:
                step.call_details = msgspec.structs.replace(step.call_details, round=event.round)
            if step.started_at is None:
                step.started_at = at
        case StepRoundEnded():
            _prepare_round(state, step, event, at)
        case StepFannedOut(_, _, payload):
            step.attempts = 1
            step.input = payload.text
            step.started_at = at
            _start_items(state, step)
            _set_status(state, step, "RUNNING")
            _release_items(state, step.name)
        case StepWorking(_, _, remote, protocol, context):
            _set_status(state, step, "RUNNING", WaitingFor(kind="remote", text=_REMOTE_TEXT))
            _record_agent_ids(state, step, protocol=protocol, context_id=context, remote_task_id=remote)
        case StepCompleted(_, _, output, protocol, context, remote, warnings):
            step.output = output.text
            step.error = None
            step.warnings = warnings
            _record_agent_ids(state, step, protocol=protocol, context_id=context, remote_task_id=remote)
            _finish(state, step, "COMPLETED", at)
        case StepRetryScheduled(_, _, due, error, answered, protocol, context):
            _record_agent_ids(state, step, protocol=protocol, context_id=context)
            step.error = error
            if answered:
                step.answered_failures += 1
                step.reply = step.remote_task_id = None
            release_agent(step, error, answered=answered)
            _set_status(state, step, "WAITING", WaitingFor(kind="retry", text=error.message, until=due))
        case StepRequeued() | StepOutcomeResolved():
            _set_status(state, step, "PENDING")
            state.ready.append(step.name)
        case StepFailed(_, _, error, handled, protocol, context):
            _record_agent_ids(state, step, protocol=protocol, context_id=context)
            step.error = error
            _finish(state, step, "FAILED", at)
            if not handled and compensated_step(step.name) is None:
                _record_failure(state, step)
        case StepSkipped():
            _finish(state, step, "SKIPPED", at)
        case StepWaiting(_, _, waiting_for, protocol, context, remote):
            _record_agent_ids(state, step, protocol=protocol, context_id=context, remote_task_id=remote)
            _set_status(state, step, "WAITING", waiting_for)
        case StepEventTaken(_, _, _, payload):
            waiting = step.waiting_for
            assert waiting is not None, "only a step that waits takes an event"  # noqa: S101 - an invariant
            received = waiting.data if isinstance(waiting.data, list) else []
            step.waiting_for = msgspec.structs.replace(waiting, data=[*received, decode(payload.text)])
        case StepAnswered() | StepEscalated() | StepClaimed() | StepReleased():
            evolve_human_task(step, event, at)
        case StepContinued():
            step.replies += 1
            _set_status(state, step, "RUNNING")
        case StepReplied(_, reply):
            step.reply = reply.text
            _set_status(state, step, "PENDING")
            state.ready.append(step.name)
        case StepRepairRequested(_, _, repair, _, reply, protocol, context):
            _record_agent_ids(state, step, protocol=protocol, context_id=context)
            step.call_details = msgspec.structs.replace(step.call_details, repairs=repair)
            step.reply = reply.text
            # The task with the wrong output is over: the request begins one of its own.
            step.error = step.remote_task_id = None
            _set_status(state, step, "PENDING")
            state.ready.append(step.name)
        case StepOutcomeUnknown(_, _, error):
            step.error = error
            _set_status(
                state, step, "OUTCOME_UNKNOWN", WaitingFor(kind="outcome", text=error.message, since=at)
            )
        case StepCancelled():
            _finish(state, step, "CANCELLED", at)
        case StepCompensationFailed() | StepCompensationRetried():
            _evolve_compensation(state, step, event, at)
        case StepProgress():
            pass
        case _:
            assert_never(event)
