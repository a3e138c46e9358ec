"""The groups of people in the settings: whose tasks are also a person's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trunkline.machine.state import HumanTask


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
