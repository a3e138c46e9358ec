"""
When two histories are the same: equal up to ids, times and the order of independent events.

    ids     the run's id becomes RUN wherever it stands, so task ids keep their step and number; that of the run that it
            is a retry of becomes EARLIER, the correlation id CORRELATION. Ids that an agent has given stay.
    times   `at` is left out. `due` becomes the time from its event until then: a delay is no time of day.
    order   two events are dependent if they are of the same step, if one's step waits for the other's, however far
            along the graph, or if one is about the run as a whole: every Run… event, and a failure that ends the run.
            Independent ones that stand side by side may change places; of all orders that this allows, the one that is
            first in the alphabet stands for all of them (the lexicographic normal form of a trace).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.workflow import compile_workflow, load_workflow

# step -> all that it waits for, directly or not
Ancestors = Mapping[str, frozenset[str]]

_IDS = {"id": "RUN", "retry_of": "EARLIER", "correlation_id": "CORRELATION"}


class ComparableEvent(NamedTuple):
    """One event, without ids and times."""

    type: str
    step: str | None
    data: bytes

    @property
    def is_about_the_run(self) -> bool:
        # Whatever comes after a failure that nobody handles, comes of it.
        return self.step is None or (self.type == "StepFailed" and b'"handled":true' not in self.data)


def ancestors(definition: Json) -> Ancestors:
    steps = compile_workflow(load_workflow(encode(definition)).definition).steps
    found: dict[str, frozenset[str]] = {}

    def of(name: str) -> frozenset[str]:
        if name not in found:
            needs = steps[name].needs
            found[name] = frozenset(needs).union(*(of(need) for need in needs))
        return found[name]

    return {name: of(name) for name in steps}


def normal_form(definition: Json, run: JsonObject, events: Sequence[JsonObject]) -> list[ComparableEvent]:
    """Equal for histories that are the same, and for no others. The numbers of the events must have no gap."""
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), "The history has a gap"
    return _first_order([_told(run, event) for event in events], ancestors(definition))


def without_ids(value: Json, run: JsonObject) -> Json:
    """The value with the run's own ids replaced, also inside of texts."""
    match value:
        case str():
            for name, stands_for in _IDS.items():
                value = value.replace(str(run[name]), stands_for) if name in run else value
            return value
        case list():
            return [without_ids(item, run) for item in value]
        case dict():
            return {str(without_ids(name, run)): without_ids(item, run) for name, item in value.items()}
        case _:
            return value


def _told(run: JsonObject, event: JsonObject) -> ComparableEvent:
    data = without_ids(event["data"], run)
    assert isinstance(data, dict)
    if "due" in data:
        delay = datetime.fromisoformat(str(data["due"])) - datetime.fromisoformat(str(event["at"]))
        data["due"] = delay.total_seconds()
    step = data.get("step")
    return ComparableEvent(
        str(event["type"]), None if step is None else str(step), encode(dict(sorted(data.items())))
    )


def _first_order(history: Sequence[ComparableEvent], above: Ancestors) -> list[ComparableEvent]:
    rest = list(history)
    ordered: list[ComparableEvent] = []
    while rest:
        free = [
            event
            for place, event in enumerate(rest)
            if not any(_are_dependent(earlier, event, above) for earlier in rest[:place])
        ]
        ordered.append(min(free, key=lambda event: (event.type, event.step or "", event.data)))
        rest.remove(ordered[-1])
    return ordered


def _are_dependent(one: ComparableEvent, other: ComparableEvent, above: Ancestors) -> bool:
    if one.is_about_the_run or other.is_about_the_run or one.step is None or other.step is None:
        return True
    return one.step == other.step or one.step in above[other.step] or other.step in above[one.step]
