"""
On Kafka and PostgreSQL: the process ends at every point where it can hurt, is started again, and nothing is lost,
stuck or doubled. So it is when a commit happens and nobody is told.

All roles are in one process; the messages travel all the same. TRUNKLINE_CHAOS_POINTS says how many occurrences of
each point are tried, TRUNKLINE_CHAOS_SHARE=2/6 the second sixth of the points.
"""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from pathlib import Path
from zlib import crc32

import aiohttp
import pytest
from confluent_kafka.admin import AdminClient
from deploy.local.postgres import PostgresServer
from tests.crash.agents import CrashTestAgents
from tests.crash.client import TrunklineClient
from tests.crash.conftest import register_everything
from tests.crash.crash_points import (
    AGENT_POINTS,
    BREAKER_POINTS,
    BROKER_POINTS,
    COMMIT_POINTS,
    HUMAN_TASK_POINTS,
    IN_TRANSACTION,
    RECOVERY_POINTS,
    STOP_POINTS,
    STREAM_POINTS,
    TAKEOVER_POINTS,
    TIMER_POINTS,
    TRAVEL_POINTS,
)
from tests.crash.process_instances import ProcessStarter
from tests.crash.restart_scenario import RestartScenario
from tests.crash.workflows import KINDS, LIMITED_AGENTS, MORE_KINDS, WorkflowKind
from tests.services import fresh_database, fresh_topics

pytestmark = pytest.mark.anyio

CreateScenario = Callable[[Sequence[WorkflowKind], str], RestartScenario]

OCCURRENCES = int(os.environ.get("TRUNKLINE_CHAOS_POINTS", "1"))
SHARE, SHARES = (int(number) for number in os.environ.get("TRUNKLINE_CHAOS_SHARE", "1/1").split("/"))

# A relay commits only where it takes what another process has left; what its own process commits, that deletes.
RELAY_COMMITS = ("relay.commit.before", "relay.commit.after")
POINTS = (
    *(point for point in COMMIT_POINTS if point not in RELAY_COMMITS),
    *BROKER_POINTS,
    *IN_TRANSACTION,
    *TRAVEL_POINTS,
    *TIMER_POINTS,
    *STOP_POINTS,
    *STREAM_POINTS,
    *BREAKER_POINTS,
    "tasks.reclaim",
    "post.before",
    "post.after",
    *AGENT_POINTS,
)
POINTS_OF_RECOVERY = (*RECOVERY_POINTS, "produce.before", "settle.before", "bridge.commit.after")
# They come once or twice in a scenario, or not at all unless something has been lost; a lease is held, and tasks are
# reclaimed, every few seconds.
SELDOM = {
    "tasks.reclaim",
    "timers.fire_due",
    "tasks.stop",
    "agents.record_calls",
    "runs.insert",
    "dispatches.take_due",
    *STREAM_POINTS,
    "leases.hold",
    "lease.commit.before",
    "lease.commit.after",
}
# Sent again only what is late: a step whose agent takes longer than that, or whose message is lost.
NOT_ALWAYS_REACHED = {"dispatches.take_due"}


@pytest.fixture(scope="session")
def template_database(postgres: PostgresServer) -> Generator[str]:
    """The name of a database that has all agents and workflows, and no run; filled by the first who needs it."""
    name = f"furnished_{secrets.token_hex(8)}"
    postgres.create_database(name, template="migrated")
    yield name
    postgres.drop_database(name)


@pytest.fixture(scope="session")
async def copied_database(
    template_database: str,
    postgres: PostgresServer,
    starter: ProcessStarter,
    agents: CrashTestAgents,
    session: aiohttp.ClientSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    settings = {"TRUNKLINE_STORE": postgres.url(template_database), "TRUNKLINE_BROKER": "memory://"}
    life = await starter.start(tmp_path_factory.mktemp("prepared"), settings=settings)
    url = await life.ready
    assert url is not None
    await register_everything(TrunklineClient(session, url), agents, fields=LIMITED_AGENTS)
    os.kill(life.pid, signal.SIGTERM)
    assert await life.ended == 0
    return template_database


@pytest.fixture
def scenario_of(
    copied_database: str,
    postgres: PostgresServer,
    kafka_servers: str,
    kafka_admin: AdminClient,
    tmp_path: Path,
    agents: CrashTestAgents,
    starter: ProcessStarter,
    session: aiohttp.ClientSession,
) -> Generator[CreateScenario]:
    with ExitStack() as stack:

        def begin(kinds: Sequence[WorkflowKind], name: str) -> RestartScenario:
            stack.close()
            topics = stack.enter_context(fresh_topics(kafka_admin))
            settings = {
                "TRUNKLINE_STORE": stack.enter_context(fresh_database(postgres, copied_database)),
                "TRUNKLINE_BROKER": f"kafka://{kafka_servers}",
                "TRUNKLINE_TASKS_TOPIC": topics.tasks,
                "TRUNKLINE_RESULTS_TOPIC": topics.results,
                "TRUNKLINE_EVENTS_TOPIC": topics.events,
                "TRUNKLINE_KAFKA_GROUP": topics.tasks,
            }
            scenario = RestartScenario(kinds, tmp_path / name, agents, starter, session, settings)
            # A cancellation travels too: whoever is called meanwhile is called rightly.
            agents.life_of = lambda _process: agents.life
            return scenario

        yield begin


def _occurrences(point: str) -> Sequence[int]:
    if OCCURRENCES > 1:
        return range(1, OCCURRENCES + 1)
    # Not always the very first; the same one every time.
    return [1 if point in SELDOM else 1 + crc32(point.encode()) % 4]


@pytest.mark.timeout(300 * OCCURRENCES)
@pytest.mark.parametrize("point", POINTS[SHARE - 1 :: SHARES])
async def test_runs_survive_the_end_of_the_process(
    point: str, scenario_of: CreateScenario, starter: ProcessStarter
) -> None:
    ended = 0
    for occurrence in _occurrences(point):
        scenario = scenario_of(KINDS, f"{occurrence}")
        found = await scenario.live(point, occurrence)
        if found is None:
            ended += 1
            found = await scenario.live()
        await starter.end()
        assert found == [], f"ended at occurrence {occurrence} of {point}"
    assert ended or point in NOT_ALWAYS_REACHED or point.endswith(".doubted"), f"{point} was never reached"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", [*HUMAN_TASK_POINTS, "timers.fire_due", "executor.commit.after"])
async def test_tasks_of_people_survive_the_end_of_the_process(
    point: str, scenario_of: CreateScenario, starter: ProcessStarter
) -> None:
    scenario = scenario_of([kind for kind in MORE_KINDS if kind.name == "approved"] * 3, "asking")
    # The timers of several runs may be fired at once.
    assert await scenario.live(point, 1 if point in SELDOM else 2) is None, f"{point} was never reached"
    found = await scenario.live()
    await starter.end()
    assert found == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", [*TAKEOVER_POINTS, *RELAY_COMMITS])
async def test_what_was_committed_and_not_sent_survives_another_end(
    point: str, scenario_of: CreateScenario, starter: ProcessStarter
) -> None:
    scenario = scenario_of(KINDS, "sent")
    assert await scenario.live("produce.before", 3) is None
    assert await scenario.live(point, 1) is None
    found = await scenario.live()
    await starter.end()
    assert found == []


@pytest.mark.timeout(300 * OCCURRENCES)
@pytest.mark.parametrize("point", POINTS_OF_RECOVERY[SHARE - 1 :: SHARES])
async def test_runs_survive_another_end_while_they_recover(
    point: str, scenario_of: CreateScenario, starter: ProcessStarter
) -> None:
    for occurrence in range(2, 2 + OCCURRENCES):
        scenario = scenario_of(KINDS, f"{occurrence}")
        assert await scenario.live("agent.received", 3) is None
        found = await scenario.live(point, occurrence)
        if found is None:
            found = await scenario.live()
        await starter.end()
        assert found == [], f"ended at {point}, occurrence {occurrence}, of the second life"
