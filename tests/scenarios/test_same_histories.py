"""The same workflow has the same history in both modes, whatever its kind; and another history is told apart."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from deploy.local.postgres import PostgresServer
from tests.scenarios.histories import normal_form, without_ids
from tests.scenarios.scripted_scenarios import SCENARIOS, Scenario, ScenarioResult, run_scenario
from tests.services import fresh_database, fresh_topics

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing import RunningSystem, ScriptedAgent, objects_in, running_system

# It is about both sets of backends, and chooses them by itself.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]


class BothModes(NamedTuple):
    embedded: RunningSystem
    distributed: RunningSystem


@pytest.fixture(scope="module")
async def both(
    postgres: PostgresServer,
    kafka_admin: AdminClient,
    kafka_servers: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[BothModes]:
    folder = tmp_path_factory.mktemp("both")
    with fresh_database(postgres) as url, fresh_topics(kafka_admin) as topics:
        async with (
            running_system(folder / "embedded") as embedded,
            running_system(
                folder / "distributed",
                store=url,
                broker=f"kafka://{kafka_servers}",
                tasks_topic=topics.tasks,
                results_topic=topics.results,
                events_topic=topics.events,
                kafka_group=topics.tasks,
            ) as distributed,
        ):
            yield BothModes(embedded, distributed)


async def prepare(system: RunningSystem, scenario: Scenario, agents: dict[str, ScriptedAgent]) -> None:
    for name, agent in agents.items():
        await system.call("DELETE", f"/agents/{name}")
        await system.register(name, agent.url, protocol=scenario.agents[name].protocol)
    await system.save(scenario.definition)


TIMES = {"created_at", "started_at", "finished_at", "cancel_requested_at"}


def without_ids_and_times(run: JsonObject) -> JsonObject:
    """The run as the API shows it, without its ids; of a time only whether it is there."""
    shown = without_ids(_without_times(run), run)
    assert isinstance(shown, dict)
    return {**shown, "steps": [_without_times(step) for step in objects_in(shown["steps"])]}


def _without_times(shown: JsonObject) -> JsonObject:
    return {name: "then" if name in TIMES and value else value for name, value in shown.items()}


def asked(result: ScenarioResult) -> dict[str, list[Json]]:
    """What each agent was asked; in the order of the alphabet, since steps that share an agent need no order."""
    return {
        name: sorted((without_ids(body, result.run) for body in bodies), key=encode)
        for name, bodies in result.calls.items()
    }


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
async def test_a_workflow_has_the_same_history_in_both_modes(both: BothModes, scenario: Scenario) -> None:
    async with AsyncExitStack() as stack:
        agents = {name: await stack.enter_async_context(ScriptedAgent()) for name in scenario.agents}
        histories: list[ScenarioResult] = []
        for system in both:
            await prepare(system, scenario, agents)
            histories.append(await run_scenario(scenario, system, agents))
    embedded, distributed = (normal_form(scenario.definition, told.run, told.events) for told in histories)
    assert distributed == embedded
    assert without_ids_and_times(histories[1].run) == without_ids_and_times(histories[0].run)
    assert asked(histories[1]) == asked(histories[0])


# --- the comparison itself

FAN: JsonObject = {
    "name": "fan",
    "steps": {
        "a": {"agent": "A"},
        "b": {"agent": "A", "needs": ["a"]},
        "c": {"agent": "A", "needs": ["b"]},
        "x": {"agent": "A"},
        "end": {"agent": "A", "needs": ["c", "x"]},
    },
}


def run_of(number: int) -> JsonObject:
    return {"id": f"run-{number}", "correlation_id": f"correlation-{number}"}


def history(number: int, *lines: str) -> list[JsonObject]:
    """Of lines like `StepStarted b`; of another run at another time for each number."""
    told: list[JsonObject] = []
    for seq, line in enumerate(lines, 1):
        kind, _, step = line.partition(" ")
        data: JsonObject = {}
        if kind == "RunStarted":
            data = {"correlation_id": f"correlation-{number}"}
        elif step:
            data = {"step": step, "attempt": 1, "task_id": f"run-{number}/{step}/0"}
        if kind == "StepRetryScheduled":
            data["due"] = f"2026-01-0{number}T00:00:{seq:02}.020000Z"
        told.append(
            {"seq": seq, "type": kind, "at": f"2026-01-0{number}T00:00:{seq:02}.000000Z", "data": data}
        )
    return told


LINES = (
    "RunStarted",
    "StepStarted a",
    "StepStarted x",
    "StepRetryScheduled a",
    "StepStarted a",
    "StepCompleted a",
    "StepStarted b",
    "StepCompleted b",
    "StepStarted c",
    "StepCompleted c",
    "StepCompleted x",
    "StepStarted end",
    "StepCompleted end",
    "RunCompleted",
)


def form(lines: tuple[str, ...], number: int = 1) -> list[object]:
    return list(normal_form(FAN, run_of(number), history(number, *lines)))


def test_ids_times_and_the_order_of_independent_events_make_no_difference() -> None:
    others = [line for line in LINES if not line.endswith(" x")]
    early = (*others[:1], "StepStarted x", "StepCompleted x", *others[1:])
    late = (*others[:-3], "StepStarted x", "StepCompleted x", *others[-3:])
    assert form(LINES, 1) == form(LINES, 2) == form(early, 1) == form(late, 2)


def swapped(one: str, other: str) -> tuple[str, ...]:
    turned = {one: other, other: one}
    return tuple(turned.get(line, line) for line in LINES)


def renamed(one: str, other: str) -> tuple[str, ...]:
    return tuple(line.replace(one, other) for line in LINES)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(LINES[:-1], id="the end is missing"),
        pytest.param((*LINES[:3], *LINES[5:]), id="a retry is missing"),
        pytest.param((*LINES[:3], *LINES[2:]), id="an event is doubled"),
        pytest.param(swapped("StepCompleted a", "StepStarted b"), id="a step begins before what it needs"),
        pytest.param(swapped("StepCompleted a", "StepCompleted c"), id="far along the graph"),
        pytest.param(swapped("StepStarted x", "StepCompleted x"), id="a step ends before it begins"),
        pytest.param(swapped("RunStarted", "StepStarted x"), id="a step begins before the run"),
        pytest.param(swapped("StepCompleted end", "RunCompleted"), id="the run ends before its last step"),
        pytest.param(renamed("Completed x", "Skipped x"), id="a step is skipped"),
        pytest.param(renamed("Completed x", "Failed x"), id="a step fails"),
    ],
)
def test_another_history_is_distinguished(lines: tuple[str, ...]) -> None:
    assert form(lines) != form(LINES)


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        (0, "correlation_id", "another"),
        (1, "task_id", "run-1/a/1"),
        (1, "task_id", "run-2/a/0"),
        (1, "attempt", 2),
        (3, "due", "2026-01-01T00:00:04.030000Z"),
        (6, "step", "c"),
        (9, "warnings", ["odd"]),
    ],
)
def test_any_other_value_is_distinguished(place: int, name: str, value: Json) -> None:
    events = history(1, *LINES)
    changed = copy.deepcopy(events)
    data = changed[place]["data"]
    assert isinstance(data, dict)
    data[name] = value
    assert normal_form(FAN, run_of(1), changed) != normal_form(FAN, run_of(1), events)


def test_a_failure_that_ends_the_run_stands_where_it_stands() -> None:
    failed = ("RunStarted", "StepStarted a", "StepStarted x", "StepFailed a", "StepCompleted x", "RunFailed")
    later = ("RunStarted", "StepStarted a", "StepStarted x", "StepCompleted x", "StepFailed a", "RunFailed")
    assert form(failed) != form(later)


def test_a_gap_in_the_numbers_is_no_history() -> None:
    events = history(1, *LINES)
    del events[4]
    with pytest.raises(AssertionError, match="gap"):
        normal_form(FAN, run_of(1), events)
