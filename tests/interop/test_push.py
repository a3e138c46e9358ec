"""
Agents that ring when a task has moved on, built with other people's frameworks.

Where time stands still, no agent is polled unless it has sent a push notification: each change there follows from one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import aiohttp
import pytest
from deploy.local.folders import service_folder
from deploy.local.ports import free_port
from prometheus_client.parser import text_string_to_metric_families
from tests.crash.client import FINAL_EVENTS, TrunklineClient
from tests.crash.server import KillableServer
from tests.interop.agents import RINGING, AgentProcess
from tests.interop.workflows import begin, name_of, one, output_of
from tests.services import needed

from trunkline.messages import TaskKey
from trunkline.protocols import PushTarget
from trunkline.testing import FakeClock, RunningSystem, running_system
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

HEADER = "X-A2A-Notification-Token"
# In both dialects' shapes: a task that is over, and a word about it.
FORGED_BODIES = (
    b'{"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}}',
    b'{"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_FAILED"}}}',
    b'{"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_CANCELED"}}}',
)


@pytest.fixture(params=RINGING)
def pushing_agent(request: pytest.FixtureRequest) -> Generator[AgentProcess]:
    with (
        service_folder("agent") as folder,
        needed(),
        AgentProcess(request.param, folder, free_port()) as agent,
    ):
        agent.start()
        yield agent


@pytest.fixture
async def system(tmp_path: Path, pushing_agent: AgentProcess) -> AsyncGenerator[RunningSystem]:
    """One whose clock stands still; it knows the agent by its URL, and the agent can reach it."""
    port = free_port()
    async with running_system(
        tmp_path / "data", port=port, clock=FakeClock(), public_url=f"http://127.0.0.1:{port}"
    ) as running:
        await running.register(pushing_agent.name, pushing_agent.url)
        await running.save(one(pushing_agent.name))
        yield running


def push_target_of(system: RunningSystem, run_id: str) -> PushTarget:
    target = system.embedded.api.push_notifications.target(TaskKey(f"{run_id}/only/0", 1))
    assert target is not None
    return target


async def kinds_on_the_wire(system: RunningSystem, run_id: str) -> Counter[str]:
    return Counter(str(item["kind"]) for item in await system.items(f"/runs/{run_id}/wire"))


async def test_a_long_task_ends_when_its_agent_sends_a_notification(
    system: RunningSystem, pushing_agent: AgentProcess
) -> None:
    run_id = await begin(system, pushing_agent, "work long")
    assert (await system.get(run_id))["status"] == "RUNNING"
    pushing_agent.release("long")
    run = await system.wait_for(run_id)
    assert output_of(run)["text"] == "Done: long"
    assert step_of(run, "only")["protocol"] == pushing_agent.kind.dialect
    wire = await kinds_on_the_wire(system, run_id)
    assert wire["send"] == 1
    # Every question follows a ring, and one answered question may do for several rings.
    assert 1 <= wire["poll"] <= wire["push"]
    # Notifications that arrive within a second after another one are written as one.
    assert wire["push"] <= (await system.metric("agent_pushes_total", result="asked") or 0)
    assert await system.metric("agent_pushes_total", result="refused") is None
    assert len(pushing_agent.executions("work long")) == 1


async def test_a_forged_notification_changes_nothing(
    system: RunningSystem, pushing_agent: AgentProcess
) -> None:
    run_id = await begin(system, pushing_agent, "work long")
    target = push_target_of(system, run_id)
    address, _, name = target.url.rpartition("/")
    forged: list[tuple[str, dict[str, str]]] = [
        (target.url, {}),
        (target.url, {HEADER: target.token[::-1]}),
        (f"{address}/{name[::-1]}", {HEADER: target.token}),
        (target.url, {"Authorization": f"Bearer {target.token}"}),
    ]
    async with aiohttp.ClientSession() as session:
        for url, headers in forged:
            for body in FORGED_BODIES:
                async with session.post(url, data=body, headers=headers) as answer:
                    assert answer.status == 404
    assert await system.metric("agent_pushes_total", result="refused") == len(forged) * len(FORGED_BODIES)
    assert (await system.get(run_id))["status"] == "RUNNING"
    pushing_agent.release("long")
    assert output_of(await system.wait_for(run_id))["text"] == "Done: long"
    # Only the agent's own notifications were accepted, and each poll follows one.
    wire = await kinds_on_the_wire(system, run_id)
    assert wire["push"] <= (await system.metric("agent_pushes_total", result="asked") or 0)
    assert wire["poll"] <= wire["push"]


async def test_a_replayed_push_makes_no_false_body_true(
    system: RunningSystem, pushing_agent: AgentProcess
) -> None:
    run_id = await begin(system, pushing_agent, "work long")
    target = push_target_of(system, run_id)
    async with aiohttp.ClientSession(headers={HEADER: target.token}) as session:
        for body in FORGED_BODIES:
            asked = len(_questions(pushing_agent))
            async with session.post(target.url, data=body) as answer:
                assert answer.status == 204
            while len(_questions(pushing_agent)) == asked:
                await asyncio.sleep(0.02)
        assert (await system.get(run_id))["status"] == "RUNNING"
        pushing_agent.release("long")
        ended = await system.wait_for(run_id)
        asked = len(_questions(pushing_agent))
        over = await system.metric("agent_pushes_total", result="over") or 0
        for body in FORGED_BODIES:
            async with session.post(target.url, data=body) as answer:
                assert answer.status == 204
    assert output_of(ended)["text"] == "Done: long"
    assert (await system.metric("agent_pushes_total", result="over") or 0) >= over + len(FORGED_BODIES)
    assert await system.get(run_id) == ended
    assert len(_questions(pushing_agent)) == asked


def _questions(agent: AgentProcess) -> list[object]:
    return [call for call in agent.calls() if call.operation == "get"]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[KillableServer]:
    """A process that agents can reach, and that the test may kill."""
    port = free_port()
    server = KillableServer(tmp_path / "data", port, "--public-url", f"http://127.0.0.1:{port}")
    try:
        await server.start()
        yield server
    finally:
        await server.kill()


@pytest.mark.parametrize("pushes_during_downtime", [True, False], ids=["push-is-lost", "push-arrives-later"])
async def test_a_task_whose_bridge_was_killed_ends_with_and_without_a_push(
    server: KillableServer, pushing_agent: AgentProcess, *, pushes_during_downtime: bool
) -> None:
    async with aiohttp.ClientSession() as session:
        client = TrunklineClient(session, server.url)
        await client.call("POST", "/agents", {"name": pushing_agent.name, "url": pushing_agent.url})
        await client.call("POST", "/workflows", one(pushing_agent.name))
        started = await client.call(
            "POST", f"/workflows/{name_of(one, pushing_agent)}/execute", {"text": "work long"}
        )
        run_id = str(started["id"])
        while not await _is_followed(client, run_id):
            await asyncio.sleep(0.02)
        await server.kill()
        if pushes_during_downtime:
            pushing_agent.release("long")
        await server.start()
        pushing_agent.release("long")
        async for event in client.follow(run_id):
            if event.type in FINAL_EVENTS:
                break
        run = await client.run(run_id)
        # The push target that was made before the kill is still valid: its notification came in time, or after the end.
        while not pushes_during_downtime and not await _accepted_pushes(client):
            await asyncio.sleep(0.02)
        refused = (await _pushes(client)).get("refused", 0)
    assert output_of(run)["text"] == "Done: long"
    assert refused == 0
    assert len(pushing_agent.sent("work long")) == 1
    assert len(pushing_agent.executions("work long")) == 1


async def _is_followed(client: TrunklineClient, run_id: str) -> bool:
    run = await client.run(run_id)
    assert run["status"] in ("PENDING", "RUNNING"), run["error"]
    waiting_for = step_of(run, "only")["waiting_for"]
    return isinstance(waiting_for, dict) and waiting_for["kind"] == "remote"


async def _accepted_pushes(client: TrunklineClient) -> float:
    pushes = await _pushes(client)
    return pushes.get("asked", 0) + pushes.get("over", 0)


async def _pushes(client: TrunklineClient) -> dict[str, float]:
    text = (await client.raw("GET", "/metrics")).decode()
    return {
        sample.labels["result"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "agent_pushes_total"
    }
