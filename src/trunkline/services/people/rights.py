"""Who may answer what a step asks people, or work on it. A role that allows it is a condition of the API."""

from __future__ import annotations

from trunkline.clock import rfc3339
from trunkline.errors import Conflict, NotAllowed
from trunkline.ids import question_id
from trunkline.machine.state import HumanTask, StepState
from trunkline.services.people.groups import PeopleGroups
from trunkline.stores.base import RunRecord


def check_person(
    record: RunRecord, state: StepState, task: HumanTask, by: str | None, groups: PeopleGroups
) -> None:
    """Raises `NotAllowed` for a person who cannot answer, and `Conflict` if another person has claimed the task."""
    place = f"step {state.name} of run {record.id}"
    rule = _rule_about_people(task)
    if by is None and rule is not None:
        raise NotAllowed(
            f"The task of {place} {rule}, but the request does not say who answers.",
            fix="Send the answer with an API key.",
        )
    if task.exclude_starter and by == record.started_by:
        raise NotAllowed(
            f"The task of {place} cannot be answered by {by}, who started the run.",
            fix="Ask another person to answer.",
        )
    if task.only_assignees and by is not None and not groups.is_assigned(task, by):
        raise NotAllowed(
            f"The task of {place} cannot be answered by {by}, because only its assignees can answer: "
            f"{', '.join(task.assignees)}.",
            fix="Ask one of the assignees to answer.",
        )
    if task.claimed_by not in (None, by):
        raise claimed(record, state, task)


def claimed(record: RunRecord, state: StepState, task: HumanTask) -> Conflict:
    item = question_id(record.id, state.name, state.attempts, state.replies)
    since = "" if task.claimed_at is None else f" since {rfc3339(task.claimed_at)}"
    return Conflict(
        f"The task of step {state.name} of run {record.id} is claimed by {task.claimed_by}{since}.",
        fix=f"Ask {task.claimed_by} to answer it, or to release it: trunkline inbox release {item}.",
    )


def _rule_about_people(task: HumanTask) -> str | None:
    if task.required > 1:
        return f"needs the answers of {task.required} people"
    if task.exclude_starter:
        return "excludes the starter"
    return "is for its assignees only" if task.only_assignees else None
