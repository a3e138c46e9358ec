"""Whose the tasks of steps are, and who may answer them or work on them. The roles of keys are checked by the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trunkline.clock import rfc3339
from trunkline.errors import Conflict, NotAllowed
from trunkline.ids import question_id
from trunkline.machine.state import HumanTask, StepState
from trunkline.stores.base import RunRecord


class PeopleGroups:
    def __init__(self, members: Mapping[str, Sequence[str]]) -> None:
        """By the name of the group. A person is the name of an API key."""
        self._members = members
        self._groups_of: dict[str, list[str]] = {}
        for group, people in members.items():
            for person in dict.fromkeys(people):
                self._groups_of.setdefault(person, []).append(group)

    def names_of(self, person: str) -> tuple[str, ...]:
        """The assignees that mean this person: the person, and all groups with the person in it."""
        return (person, *self._groups_of.get(person, ()))

    def is_group(self, name: str) -> bool:
        return name in self._members

    def people(self, names: Iterable[str]) -> list[str]:
        """The people that these names mean, each once."""
        return list(dict.fromkeys(person for name in names for person in self._members.get(name, (name,))))

    def is_assigned(self, task: HumanTask, person: str) -> bool:
        return not set(self.names_of(person)).isdisjoint(task.assignees)


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
