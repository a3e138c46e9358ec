"""
A broker at its worst: records late, twice, in any order or lost; topics truncated or created again, offsets reset,
partitions that change hands all the time. The database knows what is owed: nothing is lost, and nobody is called twice.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from itertools import count
from typing import Literal

import aiohttp
import pytest
from confluent_kafka.admin import AdminClient
from deploy.local.postgres import PostgresServer
from tests.crash.agents import CrashTestAgents
from tests.crash.client import TrunklineClient
from tests.crash.conftest import register_everything
from tests.crash.history_checker import RequestedRun, violations
from tests.crash.history_reader import quiet, read_history
from tests.crash.topics import Topics
from tests.crash.unreliable_broker import LossyProducer, UnreliableProducer, UnreliableSource
from tests.crash.workflows import GATED, KINDS, MORE_KINDS, WatchedRun, WorkflowKind
from tests.scenarios.distributed.in_process_roles import serving_roles
from tests.services import fresh_database, fresh_topic_prefix

from trunkline.brokers.base import Producer
from trunkline.messages import OutgoingMessage, TopicNames
from trunkline.testing import RunningSystem
from trunkline.wiring import Interceptors, LivenessTimeouts

pytestmark = pytest.mark.anyio

# Only a run that is stuck takes so long.
TIMEOUT_SECONDS = 120
MANY_PARTITIONS = 32
BRIDGES = 8
RESTARTS = 40
POISON = (b"", b"\xff\x00", b"{}", b"[" * 10_000, b'{"task_id": 1}', b"null", b"x" * 100_000)
ROUNDS = 10
# What is lost is sent again soon, and nobody waits long for who has gone.
SHORT_TIMEOUTS = Interceptors(
    timeouts=LivenessTimeouts(resend_after=timedelta(seconds=1), session=timedelta(seconds=2))
)
EVERY_KIND = (*KINDS, *MORE_KINDS)
TWO_KINDS = (KINDS[0], next(kind for kind in KINDS if kind.name == "once"))


class BrokerScenario:
    """A database and topics of one test, its agents, and what it has asked for."""

    def __init__(self, agents: CrashTestAgents, session: aiohttp.ClientSession, topics: Topics) -> None:
        self.agents = agents
        self.topics = topics
        self._session = session
        self._wanted: list[RequestedRun] = []
        self._numbers = count()

    @property
    def names(self) -> TopicNames:
        return self.topics.names

    def client(self, system: RunningSystem) -> TrunklineClient:
        return TrunklineClient(self._session, system.url)

    async def prepared(self, system: RunningSystem) -> TrunklineClient:
        client = self.client(system)
        await register_everything(client, self.agents)
        return client

    async def start(self, client: TrunklineClient, kind: WorkflowKind) -> RequestedRun:
        want = kind.wanted(f"{kind.name}-{next(self._numbers)}")
        self._wanted.append(want)
        want.run_id = await client.start(kind.name, want.key)
        return want

    async def start_all(self, client: TrunklineClient, kinds: Sequence[WorkflowKind]) -> None:
        for kind in kinds:
            await self.start(client, kind)

    async def see(self, client: TrunklineClient, kind: WorkflowKind) -> None:
        """A run, from its start to its end."""
        want = await self.start(client, kind)
        async for event in client.follow(str(want.run_id)):
            await kind.react(WatchedRun(client, self.agents, want), event)

    async def see_all(self, client: TrunklineClient, kinds: Sequence[WorkflowKind]) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS), asyncio.TaskGroup() as group:
            for kind in kinds:
                group.create_task(self.see(client, kind))

    async def finish(self, client: TrunklineClient) -> list[str]:
        """Waits until every run is over, and says what is wrong; there is no excuse for a second call."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            for want in self._wanted:
                async for _ in client.follow(str(want.run_id)):
                    pass
        await quiet(client)
        return violations(await read_history(client, self._wanted, self.agents.calls, {}))

    async def sent(self, client: TrunklineClient) -> None:
        """Returns when the outbox is empty."""
        while (await client.gauge('trunkline_queue_depth{queue="outbox"}'))[""]:
            await asyncio.sleep(0.05)


@pytest.fixture
def topics(kafka_servers: str, kafka_admin: AdminClient) -> Generator[Topics]:
    with fresh_topic_prefix(kafka_admin) as prefix:
        names = TopicNames(
            tasks=f"{prefix}tasks", results=f"{prefix}results", events=f"{prefix}events", commands=""
        )
        yield Topics(kafka_servers, kafka_admin, names)


@pytest.fixture
def partitions() -> int:
    return 4


@pytest.fixture
async def scenario(
    topics: Topics,
    partitions: int,
    postgres: PostgresServer,
    kafka_servers: str,
    agents: CrashTestAgents,
    session: aiohttp.ClientSession,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: str,
) -> AsyncGenerator[BrokerScenario]:
    names = topics.names
    await topics.make(names.tasks, names.results, names.events, partitions=partitions)
    agents.forget()
    # A cancellation travels too: whoever is called meanwhile is called rightly.
    agents.life_of = lambda _process: 0
    with fresh_database(postgres) as url:
        for name, value in {
            "STORE": url,
            "BROKER": f"kafka://{kafka_servers}",
            "TASKS_TOPIC": names.tasks,
            "RESULTS_TOPIC": names.results,
            "EVENTS_TOPIC": names.events,
            "KAFKA_GROUP": names.tasks,
            "SECRET_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "ALLOWED_NETWORKS": "127.0.0.0/8",
            "DATA": str(tmp_path),
        }.items():
            monkeypatch.setenv(f"TRUNKLINE_{name}", value)
        yield BrokerScenario(agents, session, topics)


def _losing_some(chance: random.Random) -> Callable[[OutgoingMessage], bool]:
    return lambda _message: chance.random() < 0.15


def _losing_stops(message: OutgoingMessage) -> bool:
    return dict(message.headers).get("trunkline-type") == b"cancel-task"


@pytest.mark.parametrize("seed", [1, 2])
async def test_records_that_come_late_twice_and_in_any_order_change_nothing(
    scenario: BrokerScenario, seed: int
) -> None:
    chance = random.Random(seed)
    interceptors = Interceptors(
        source=lambda source: UnreliableSource(source, chance),
        producer=lambda producer: UnreliableProducer(producer, chance),
    )
    async with serving_roles("api", "executor", "bridge", interceptors=interceptors) as system:
        client = await scenario.prepared(system)
        await scenario.see_all(client, EVERY_KIND * 4)
        assert await scenario.finish(client) == []


@pytest.mark.parametrize("loses", [_losing_some(random.Random(4)), _losing_stops], ids=["some", "stops"])
async def test_what_the_broker_loses_is_sent_again_or_found_out(
    scenario: BrokerScenario, loses: Callable[[OutgoingMessage], bool]
) -> None:
    producers: list[LossyProducer] = []

    def losing(producer: Producer) -> Producer:
        producers.append(LossyProducer(producer, loses))
        return producers[-1]

    interceptors = Interceptors(timeouts=SHORT_TIMEOUTS.timeouts, producer=losing)
    async with serving_roles("api", "executor", "bridge", interceptors=interceptors) as system:
        client = await scenario.prepared(system)
        await scenario.see_all(client, EVERY_KIND * 2)
        assert await scenario.finish(client) == []
    assert sum(producer.lost for producer in producers) >= 4


async def test_tasks_that_were_deleted_from_their_topic_are_sent_again(scenario: BrokerScenario) -> None:
    async with serving_roles("api", "executor", interceptors=SHORT_TIMEOUTS) as system:
        client = await scenario.prepared(system)
        await scenario.start_all(client, TWO_KINDS * 5)
        await scenario.sent(client)
    assert await scenario.topics.truncate(scenario.names.tasks) >= 10
    assert scenario.agents.calls == []
    async with serving_roles("api", "executor", "bridge", interceptors=SHORT_TIMEOUTS) as system:
        assert await scenario.finish(scenario.client(system)) == []


async def test_results_that_were_deleted_from_their_topic_are_published_again(
    scenario: BrokerScenario,
) -> None:
    async with serving_roles("api", interceptors=SHORT_TIMEOUTS) as api:
        client = await scenario.prepared(api)
        async with serving_roles("executor", interceptors=SHORT_TIMEOUTS):
            await scenario.start_all(client, TWO_KINDS * 5)
            while await scenario.topics.written(scenario.names.tasks) < 10:
                pass
        async with serving_roles("bridge", interceptors=SHORT_TIMEOUTS):
            while await scenario.topics.written(scenario.names.results) < 10:
                pass
        assert await scenario.topics.truncate(scenario.names.results) >= 10
        assert len(scenario.agents.calls) == 10
        async with serving_roles("executor", "bridge", interceptors=SHORT_TIMEOUTS):
            assert await scenario.finish(client) == []


@pytest.mark.parametrize("to", ["earliest", "latest"])
async def test_offsets_that_were_reset_lose_and_double_nothing(
    scenario: BrokerScenario, to: Literal["earliest", "latest"]
) -> None:
    async with serving_roles("api", "executor", "bridge", interceptors=SHORT_TIMEOUTS) as system:
        client = await scenario.prepared(system)
        await scenario.see_all(client, EVERY_KIND)
    async with serving_roles("api", "executor", interceptors=SHORT_TIMEOUTS) as system:
        await scenario.start_all(scenario.client(system), TWO_KINDS * 5)
        await scenario.sent(scenario.client(system))
    group = scenario.names.tasks
    await scenario.topics.reset_offsets(f"{group}.bridge", scenario.names.tasks, to)
    await scenario.topics.reset_offsets(f"{group}.executor", scenario.names.results, to)
    async with serving_roles("api", "executor", "bridge", interceptors=SHORT_TIMEOUTS) as system:
        assert await scenario.finish(scenario.client(system)) == []


async def test_topics_that_are_deleted_and_recreated_during_runs_lose_nothing(
    scenario: BrokerScenario,
) -> None:
    async with serving_roles("api", "executor", "bridge", interceptors=SHORT_TIMEOUTS) as system:
        client = await scenario.prepared(system)
        gated = [await scenario.start(client, GATED) for _ in range(10)]
        for want in gated:
            await scenario.agents.called_for(str(want.run_id))
        await scenario.topics.delete(scenario.names.tasks, scenario.names.results)
        await scenario.start_all(client, TWO_KINDS * 5)
        scenario.agents.gate.set()
        await scenario.topics.make(scenario.names.tasks, scenario.names.results)
        await scenario.see_all(client, EVERY_KIND)
        assert await scenario.finish(client) == []


@pytest.mark.parametrize("partitions", [MANY_PARTITIONS])
async def test_bridges_that_come_and_go_all_the_time_lose_and_double_nothing(
    scenario: BrokerScenario,
) -> None:
    chance = random.Random(6)
    async with (
        serving_roles("api", "executor", interceptors=SHORT_TIMEOUTS) as system,
        AsyncExitStack() as last,
    ):
        client = await scenario.prepared(system)
        bridges: list[AsyncExitStack] = []

        async def come() -> None:
            stack = AsyncExitStack()
            await stack.enter_async_context(
                serving_roles("bridge", interceptors=SHORT_TIMEOUTS, stop_timeout="30s")
            )
            bridges.append(stack)

        async def restart_bridges() -> None:
            for _ in range(RESTARTS):
                if len(bridges) < BRIDGES and (len(bridges) < 2 or chance.random() < 0.6):
                    await come()
                else:
                    await bridges.pop(chance.randrange(len(bridges))).aclose()
            while len(bridges) < BRIDGES:
                await come()

        async def leave() -> None:
            for bridge in bridges:
                await bridge.aclose()

        last.push_async_callback(leave)
        async with asyncio.TaskGroup() as group:
            group.create_task(restart_bridges())
            for _ in range(8):
                await scenario.see_all(client, EVERY_KIND)
        assert await scenario.finish(client) == []


async def test_a_poisoned_record_among_good_ones_becomes_a_dead_letter_and_delays_nothing(
    scenario: BrokerScenario,
) -> None:
    tasks, results = scenario.names.tasks, scenario.names.results
    headers = {"trunkline-type": b"agent-task", "trunkline-version": b"1"}
    async with (
        serving_roles("api", "executor", interceptors=SHORT_TIMEOUTS) as system,
        serving_roles("bridge", interceptors=SHORT_TIMEOUTS),
        serving_roles("bridge", interceptors=SHORT_TIMEOUTS),
    ):
        client = await scenario.prepared(system)
        async with asyncio.TaskGroup() as group:
            for number in range(ROUNDS):
                key = f"{number}".encode()
                await scenario.topics.write(
                    [
                        (topic, key, value, given)
                        for value in POISON
                        for topic in (tasks, results)
                        for given in ({}, headers)
                    ]
                )
                group.create_task(scenario.see_all(client, EVERY_KIND))
        expected = ROUNDS * len(POISON) * 4
        letters = await client.pages("/dead-letters")
        while len(letters) < expected:
            await asyncio.sleep(0.1)
            letters = await client.pages("/dead-letters")
        assert len(letters) == expected
        assert all(letter["reason"] for letter in letters)
        for letter in letters:
            await client.raw("DELETE", f"/api/v1/dead-letters/{letter['id']}")
        assert await scenario.finish(client) == []
