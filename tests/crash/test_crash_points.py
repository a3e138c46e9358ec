"""The process ends at every point where it can hurt, is started again, and nothing is lost, stuck or doubled."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import aiohttp
import pytest
from tests.crash.agents import CrashTestAgents
from tests.crash.client import TrunklineClient
from tests.crash.crash_points import (
    AGENT_POINTS,
    BREAKER_POINTS,
    CACHE_POINTS,
    EDGE_POINTS,
    EVENT_POINTS,
    HUMAN_TASK_POINTS,
    IN_TRANSACTION,
    RECOVERY_POINTS,
    STOP_POINTS,
    STREAM_POINTS,
    TIMER_POINTS,
)
from tests.crash.process_instances import ProcessStarter
from tests.crash.restart_scenario import RestartScenario
from tests.crash.workflows import KINDS, MORE_KINDS, WorkflowKind

pytestmark = pytest.mark.anyio

CreateScenario = Callable[[Sequence[WorkflowKind], str], RestartScenario]

# What ends inside a transaction is as if it had not been; a few kinds prove that for every point.
IN_DETAIL = {"sequence", "once", "asking", "cancel_remote"}
# Those that begin a run, and put something into the inbox of another.
BEGINNING = {"nested", "blocks", "rounds"}
TIMED = {"retry", "cutting"}
# Those that wait for a time, and call nobody meanwhile.
SLEEPING = {"sleeping"}
AWAITING = {"awaiting"}
ASKING_PEOPLE = {"approved", "approved_inside"}
# Those whose agent is asked to correct an output.
REPAIRED = {"repaired"}
# Those that choose their agent, and another one.
CHOOSING = {"failed_over", "hedged"}
# Those that wait for the output of an equal step.
SHARING = {"cached"}
# Those whose work is undone.
UNDONE = {"undone"}
FAILING = {"retry"}
STREAMED = {"streamed"}
STOPPED = {"cancel_call", "cancel_remote"}
# An agent that never answers leaves no answer behind.
NEVER_REACHED = {("cancel_call", point) for point in ("post.after", "agent.answered", "exchanges.put")}


@pytest.fixture
def scenario_of(
    template: Path,
    tmp_path: Path,
    agents: CrashTestAgents,
    starter: ProcessStarter,
    session: aiohttp.ClientSession,
) -> CreateScenario:
    def begin(kinds: Sequence[WorkflowKind], name: str) -> RestartScenario:
        data = tmp_path / name
        shutil.copytree(template, data)
        return RestartScenario(kinds, data, agents, starter, session)

    return begin


def _kinds_and_points() -> Iterator[tuple[WorkflowKind, str]]:
    # What one end of a process can tear apart in them is between two commits.
    yield from (
        (kind, "commit.after") for kind in MORE_KINDS if kind.name in {"nested_loop", "cancel_nested"}
    )
    for kind in MORE_KINDS:
        points = ("commit.before", "commit.after", "runs.write_transitions")
        waiting = SLEEPING | AWAITING | ASKING_PEOPLE
        yield from ((kind, point) for point in points if kind.name in waiting | REPAIRED | CHOOSING | UNDONE)
        yield from ((kind, point) for point in AGENT_POINTS if kind.name in REPAIRED | UNDONE)
        yield from ((kind, point) for point in TIMER_POINTS if kind.name in SLEEPING)
        yield from ((kind, point) for point in EVENT_POINTS if kind.name in AWAITING)
        yield from ((kind, point) for point in ("input_queue.put",) if kind.name in ASKING_PEOPLE)
        # Only this task has assignees and is escalated.
        shared = (*TIMER_POINTS, *HUMAN_TASK_POINTS)
        yield from ((kind, point) for point in shared if kind.name == "approved")
        yield from ((kind, point) for point in ("input_queue.put",) if kind.name in CHOOSING)
        sharing = (*points, "input_queue.put", *AGENT_POINTS, *CACHE_POINTS)
        yield from ((kind, point) for point in sharing if kind.name in SHARING)
        begins = ("commit.before", "commit.after", "runs.insert", "input_queue.put")
        yield from ((kind, point) for point in begins if kind.name in BEGINNING)
    for kind in KINDS:
        inside = IN_TRANSACTION if kind.name in IN_DETAIL else ("runs.write_transitions",)
        yield from ((kind, point) for point in (*EDGE_POINTS, *AGENT_POINTS, *inside))
        yield from ((kind, point) for point in ("runs.insert", "input_queue.put") if kind.name in BEGINNING)
        yield from ((kind, point) for point in TIMER_POINTS if kind.name in TIMED)
        yield from ((kind, point) for point in STOP_POINTS if kind.name in STOPPED)
        yield from ((kind, point) for point in BREAKER_POINTS if kind.name in FAILING)
        yield from ((kind, point) for point in STREAM_POINTS if kind.name in STREAMED)


@pytest.mark.parametrize(
    ("kind", "point"),
    [
        pytest.param(kind, point, id=f"{kind.name}-{point}")
        for kind, point in _kinds_and_points()
        if (kind.name, point) not in NEVER_REACHED
    ],
)
async def test_a_run_survives_the_end_of_the_process(
    kind: WorkflowKind, point: str, scenario_of: CreateScenario, starter: ProcessStarter
) -> None:
    for occurrence in count(1):
        scenario = scenario_of([kind], f"{occurrence}")
        found = await scenario.live(point, occurrence)
        survived = found is not None
        if found is None:
            found = await scenario.live()
        await starter.end()
        assert found == [], f"ended at occurrence {occurrence} of {point}"
        if survived:
            assert occurrence > 1, f"{point} was never reached"
            return


@pytest.mark.parametrize("point", [*RECOVERY_POINTS, "commit.before", "commit.after"])
@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in KINDS])
async def test_a_run_survives_another_end_while_it_recovers(
    kind: WorkflowKind, point: str, scenario_of: CreateScenario, starter: ProcessStarter
) -> None:
    for occurrence in (1, 2):
        scenario = scenario_of([kind], f"{occurrence}")
        assert await scenario.live("agent.received", 1) is None
        found = await scenario.live(point, occurrence)
        if found is None:
            found = await scenario.live()
        await starter.end()
        assert found == [], f"ended at {point}, occurrence {occurrence}, of the second life"


@pytest.mark.parametrize("point", [*EDGE_POINTS, *AGENT_POINTS, "runs.write_transitions", "tasks.claim"])
async def test_many_runs_survive_together(
    point: str, scenario_of: CreateScenario, starter: ProcessStarter
) -> None:
    # Every workflow three times in one process, so that commits carry parts of many runs.
    for occurrence in (3, 6, 12, 24):
        scenario = scenario_of(KINDS * 3, f"{occurrence}")
        found = await scenario.live(point, occurrence)
        if found is None:
            found = await scenario.live()
        await starter.end()
        assert found == [], f"ended at {point}, occurrence {occurrence}"


@pytest.mark.parametrize(
    ("point", "exists"), [("runs.insert", False), ("commit.before", False), ("commit.after", True)]
)
async def test_a_run_without_an_acknowledgement_is_stored_whole_or_not_at_all(
    point: str,
    exists: bool,
    scenario_of: CreateScenario,
    tmp_path: Path,
    starter: ProcessStarter,
    session: aiohttp.ClientSession,
) -> None:
    scenario = scenario_of([KINDS[0]], "data")
    assert await scenario.live(point, 1) is None
    life = await starter.start(tmp_path / "data")
    url = await life.ready
    assert url is not None
    client = TrunklineClient(session, url)

    runs = await client.pages("/runs")
    ends = [[event.type async for event in client.follow(str(run["id"]))][-1] for run in runs]

    assert ends == (["RunCompleted"] if exists else [])
    await starter.end()
