"""What events change in one step alone: its agent, its use of the cache, and what people do with its task."""

from __future__ import annotations

import msgspec

from trunkline.clock import Instant
from trunkline.jsontypes import decode
from trunkline.machine.events import (
    StepAnswered,
    StepClaimed,
    StepEscalated,
    StepReleased,
    StepRequeued,
    WorkEvent,
)
from trunkline.machine.state import AgentRoute, CacheUse, HedgeCall, StepState
from trunkline.messages import ERROR_CODES, StepError


def change_route(step: StepState, **changes: object) -> None:
    route = msgspec.structs.replace(step.route or AgentRoute(), **changes)
    step.call_details = msgspec.structs.replace(step.call_details, route=route)


def switch_agent(step: StepState, agent: str, number: int, hedges: tuple[HedgeCall, ...]) -> None:
    """The step's call is that of another agent: what the one before has said of it does not count."""
    if step.route is not None and step.route.agent != agent:
        step.protocol = step.context_id = step.remote_task_id = None
    change_route(step, agent=agent, number=number, hedges=hedges)


def release_agent(step: StepState, error: StepError, *, answered: bool) -> None:
    """Lets the next attempt choose another agent, unless this one may have the task."""
    if step.route is not None:
        keeps = not answered and (error.doubtful or ERROR_CODES[error.code].sent)
        change_route(step, is_settled=keeps, is_doubtful=keeps, tried=())


def change_cache_use(step: StepState, use: CacheUse) -> None:
    step.call_details = msgspec.structs.replace(step.call_details, cache=use)


def leave_cache(step: StepState, event: WorkEvent) -> None:
    """No other step waits for one that is over, is put back, or waits for a person."""
    use = step.call_details.cache
    if use is None or use.stage not in {"waiting", "leading", "alone"}:
        return
    waits = step.waiting_for is not None and (step.waits_inside or step.waiting_for.is_for_a_person)
    if step.is_final or isinstance(event, StepRequeued) or waits:
        change_cache_use(step, msgspec.structs.replace(use, stage="left"))


def evolve_human_task(
    step: StepState, event: StepAnswered | StepEscalated | StepClaimed | StepReleased, at: Instant
) -> None:
    match event:
        case StepAnswered(_, _, _, _, payload):
            step.change_human_task(lambda task: task.with_answer(decode(payload.text)))
        case StepEscalated(_, _, to):
            step.change_human_task(lambda task: task.with_assignees(to))
        case StepClaimed(_, _, by):
            step.change_human_task(lambda task: task.claimed(by, at))
        case StepReleased():
            step.change_human_task(lambda task: task.claimed(None, None))
