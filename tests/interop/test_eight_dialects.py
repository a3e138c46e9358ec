"""
One workflow whose eight steps are eight dialects, spoken by agents of five frameworks and our own, while the bridges
that call them are killed again and again.

TRUNKLINE_INTEROP_RUNS and TRUNKLINE_INTEROP_KILLS make it large.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path

import aiohttp
import pytest
from confluent_kafka.admin import AdminClient
from deploy.local.postgres import PostgresServer
from tests.crash.client import TrunklineClient
from tests.crash.fleet import Fleet, running_fleet
from tests.interop.agents import Agent
from tests.services import fresh_database, fresh_topics, shared

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import ScriptedAgent, jsonrpc_task, simple_success
from trunkline.testing.agents import Call, Reply

pytestmark = pytest.mark.anyio

RUNS = int(os.environ.get("TRUNKLINE_INTEROP_RUNS", "24"))
KILLS = int(os.environ.get("TRUNKLINE_INTEROP_KILLS", "4"))
AT_ONCE = 40
BETWEEN_KILLS = 2.0
# A message that was sent before its sender died may be noted a little later.
ARRIVAL_SECONDS = 2.0

# By step: the agent's dialect, and what else its registration says. Those without a protocol are found by their cards.
DIALECTS: dict[str, tuple[str, JsonObject]] = {
    "simple": ("simple-a2a", {}),
    "call": ("jsonrpc-call", {"protocol": "jsonrpc-call", "protocol_config": {"method": "execute_task"}}),
    "first": ("a2a-0.1", {"protocol": "a2a-0.1"}),
    "second": ("a2a-0.2", {}),
    "pinned": ("jsonrpc-2.0", {"protocol": "jsonrpc-2.0"}),
    "third": ("a2a-0.3", {}),
    "one": ("a2a-1.0", {}),
    "rest": ("a2a-1.0-http", {}),
}
# The frameworks' agents by step; the other steps' agents are our own.
FRAMEWORKS = {"pinned": "a2a-sdk-0.3", "third": "a2a-js-0.3", "one": "a2a-js-1", "rest": "a2a-sdk-1-http"}

STEPS = list(DIALECTS)
WORKFLOW: JsonObject = {
    "name": "eight",
    "steps": {
        name: {
            "agent": name,
            "input": {
                "text": "${ input.key }" if number == 0 else f"${{ input.key + '-{STEPS[number - 1]}' }}"
            },
            "needs": [] if number == 0 else [STEPS[number - 1]],
        }
        for number, name in enumerate(STEPS)
    },
}


# They carry no message: the agent is asked what it has made of one.
_QUESTIONS = frozenset({"tasks/get", "get_task_result"})


class Log:
    """What our own agents note: the same as the others."""

    def __init__(self) -> None:
        self.sent: defaultdict[str, list[float]] = defaultdict(list)

    def noting(self, step: str, answer: Callable[[Call], Json]) -> Callable[[Call], Json]:
        def noted(call: Call) -> Json:
            if call.method in _QUESTIONS:
                return answer(call)
            self.sent[f"{step}/{call.id}"].append(time.time())
            return answer(call)

        return noted


def _task_01(call: Call) -> Json:
    params = call.body["params"]
    assert isinstance(params, dict)
    artifacts: Json = [{"parts": [{"type": "text", "text": "done"}], "index": 0}]
    task: Json = {"id": params["id"], "status": {"state": "completed"}, "artifacts": artifacts}
    return {"jsonrpc": "2.0", "id": call.id, "result": task}


def _called(call: Call) -> Json:
    return {"jsonrpc": "2.0", "id": call.id, "result": {"status": "success", "response_text": "done"}}


@pytest.fixture
async def agents(
    request: pytest.FixtureRequest,
) -> AsyncGenerator[tuple[Mapping[str, str], Mapping[str, Agent], Log]]:
    """The addresses of all, the frameworks' agents, and what our own note."""
    log = Log()
    answers: dict[str, Callable[[Call], Json]] = {
        "simple": simple_success({"text": "done"}),
        "call": _called,
        "first": _task_01,
        "second": jsonrpc_task("done"),
    }
    urls: dict[str, str] = {}
    others: dict[str, Agent] = {}
    async with AsyncExitStack() as stack:
        for step, answer in answers.items():
            agent = await stack.enter_async_context(ScriptedAgent(log.noting(step, answer)))
            urls[step] = agent.url
            if step == "second":
                card: JsonObject = {
                    "name": "Second",
                    "url": agent.url,
                    "protocolVersion": "0.2.5",
                    "capabilities": {},
                    "skills": [],
                }
                agent.publish(card)
            elif step == "simple":
                agent.publish(Reply(404))
        for step, name in FRAMEWORKS.items():
            told = shared(name, request.config)
            others[step] = Agent(name, str(told["url"]), Path(str(told["folder"])))
            urls[step] = others[step].url
        yield urls, others, log


@pytest.fixture
async def fleet(
    postgres: PostgresServer, kafka_servers: str, kafka_admin: AdminClient, tmp_path: Path
) -> AsyncGenerator[Fleet]:
    with fresh_database(postgres) as store, fresh_topics(kafka_admin) as topics:
        settings = {
            "TRUNKLINE_STORE": store,
            "TRUNKLINE_BROKER": f"kafka://{kafka_servers}",
            "TRUNKLINE_TASKS_TOPIC": topics.tasks,
            "TRUNKLINE_RESULTS_TOPIC": topics.results,
            "TRUNKLINE_EVENTS_TOPIC": topics.events,
            "TRUNKLINE_KAFKA_GROUP": topics.tasks,
            # As many as the tests' topics have.
            "TRUNKLINE_TOPIC_PARTITIONS": "4",
        }
        async with running_fleet(tmp_path, settings, {"api": 1, "executor": 1, "bridge": 2}) as running:
            yield running


@pytest.mark.timeout(600 + 5 * RUNS + 20 * KILLS)
async def test_a_workflow_of_eight_dialects_survives_the_death_of_its_bridges(
    agents: tuple[Mapping[str, str], Mapping[str, Agent], Log],
    fleet: Fleet,
) -> None:
    # An event stream lasts as long as its run.
    unlimited = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=unlimited) as session:
        await _run_and_kill(*agents, fleet, TrunklineClient(session, fleet.api_urls()[0]))


async def _run_and_kill(
    urls: Mapping[str, str], others: Mapping[str, Agent], log: Log, fleet: Fleet, client: TrunklineClient
) -> None:
    for name, (_, more) in DIALECTS.items():
        registration: JsonObject = {"name": name, "url": urls[name], "timeout_ms": 60_000, **more}
        await client.call("POST", "/agents", registration)
    await client.call("POST", "/workflows", WORKFLOW)
    kills: list[float] = []
    room = asyncio.Semaphore(AT_ONCE)

    async def see_to_its_end(number: int) -> JsonObject:
        async with room:
            run_id = await client.start("eight", f"run-{number}")
            async for _ in client.follow(run_id):
                pass
            return await client.run(run_id)

    async def kill() -> None:
        for number in range(KILLS):
            await asyncio.sleep(BETWEEN_KILLS)
            member = fleet.of("bridge")[number % 2]
            member.check()
            kills.append(time.time())
            await member.kill()
            await member.start()

    async with asyncio.TaskGroup() as group:
        killing = group.create_task(kill())
        runs = [group.create_task(see_to_its_end(number)) for number in range(RUNS)]
    await killing
    for run in (task.result() for task in runs):
        assert run["status"] == "COMPLETED", run["error"]
        steps = run["steps"]
        assert isinstance(steps, list)
        spoken = {str(step["name"]): step["protocol"] for step in steps if isinstance(step, dict)}
        assert spoken == {name: dialect for name, (dialect, _) in DIALECTS.items()}
    sent = dict(log.sent)
    for step, agent in others.items():
        for call in agent.calls():
            if call.carries_a_message and call.message_id is not None:
                sent.setdefault(f"{step}/{call.message_id}", []).append(call.at)
    own = {str(task.result()["id"]) for task in runs}
    unexplained = [
        (message, times)
        for message, times in sent.items()
        if any(run_id in message for run_id in own) and not _explained(sorted(times), kills)
    ]
    assert unexplained == []
    assert len([message for message in sent if any(run_id in message for run_id in own)]) == RUNS * len(STEPS)


def _explained(times: list[float], kills: list[float]) -> bool:
    """Between two sendings of a message, whoever sent it first was killed."""
    return all(
        any(first - ARRIVAL_SECONDS <= kill <= second for kill in kills) for first, second in pairwise(times)
    )
