"""Where agents ring: only who was told the address and the token, and what they say is not believed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs
from tests.scenarios.api.test_keys import create_key

from trunkline.messages import TaskKey
from trunkline.protocols import PushTarget
from trunkline.testing import FakeClock, RunningSystem, ScriptedAgent, jsonrpc_task, running_system
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

WORKING = jsonrpc_task("", state="working")
HEADER = "X-A2A-Notification-Token"
FORGED_TASK = b'{"id": "remote-1", "status": {"state": "failed"}, "kind": "task"}'


@asynccontextmanager
async def working(tmp_path: Path) -> AsyncGenerator[tuple[RunningSystem, ScriptedAgent, str, PushTarget]]:
    """An agent that works, in a time that stands still: nobody asks it unless it rings."""
    async with (
        running_system(tmp_path / "data", clock=FakeClock(), public_url="http://trunkline.example") as system,
        ScriptedAgent(WORKING) as agent,
    ):
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
        run_id = await system.start("one")
        while step_of(await system.get(run_id), "only")["waiting_for"] is None:
            await asyncio.sleep(0.02)
        target = system.embedded.api.push_notifications.target(TaskKey(f"{run_id}/only/0", 1))
        assert target is not None
        yield system, agent, run_id, target


def path_of(target: PushTarget) -> str:
    return "/" + target.url.removeprefix("http://trunkline.example")


async def test_an_agent_that_pushes_is_polled_at_once_and_only_its_answer_counts(tmp_path: Path) -> None:
    async with working(tmp_path) as (system, agent, run_id, target):
        agent.script(jsonrpc_task("Sunny"))
        answer = await system.call("POST", path_of(target), FORGED_TASK, {HEADER: target.token})
        run = await system.wait_for(run_id)
        wire = await system.items(f"/runs/{run_id}/wire")
    assert sorted(str(item["kind"]) for item in wire) == ["poll", "push", "send"]
    assert target.token not in str(wire)
    assert (answer.status, answer.body) == (204, b"")
    assert run["status"] == "COMPLETED"
    assert [call.method for call in agent.calls] == ["message/send", "tasks/get"]


async def test_the_header_without_its_x_will_do(tmp_path: Path) -> None:
    async with working(tmp_path) as (system, agent, run_id, target):
        agent.script(jsonrpc_task("Sunny"))
        answer = await system.call("POST", path_of(target), None, {"A2A-Notification-Token": target.token})
        await system.wait_for(run_id)
    assert answer.status == 204


async def test_a_repeated_push_polls_again_and_does_nothing_once_the_task_is_over(
    tmp_path: Path,
) -> None:
    async with working(tmp_path) as (system, agent, run_id, target):
        for rings in (1, 2):
            assert (
                await system.call("POST", path_of(target), FORGED_TASK, {HEADER: target.token})
            ).status == 204
            await agent.called(1 + rings)
        agent.script(jsonrpc_task("Sunny"))
        await system.call("POST", path_of(target), FORGED_TASK, {HEADER: target.token})
        await system.wait_for(run_id)
        calls = len(agent.calls)
        again = await system.call("POST", path_of(target), FORGED_TASK, {HEADER: target.token})
        assert again.status == 204
        assert await system.metric("agent_pushes_total", result="over") == 1
    assert len(agent.calls) == calls


async def test_a_push_with_a_wrong_address_or_token_is_refused_alike(tmp_path: Path) -> None:
    async with working(tmp_path) as (system, agent, _, target):
        path, token = path_of(target), target.token
        refused = [
            await system.call("POST", path, FORGED_TASK),
            await system.call("POST", path, FORGED_TASK, {HEADER: token[:-1]}),
            await system.call("POST", path[:-1], FORGED_TASK, {HEADER: token}),
            await system.call("POST", path.partition(".")[0], FORGED_TASK, {HEADER: token}),
            await system.call("POST", "//hooks/a2a/x.y", FORGED_TASK, {HEADER: token}),
            await system.call("POST", f"//hooks/a2a/{'A' * 4000}.{'B' * 43}", FORGED_TASK, {HEADER: token}),
        ]
    assert {answer.status for answer in refused} == {404}
    said = {str(answer.json["detail"]) for answer in refused}
    assert len(said) == 1
    assert all(answer.headers["Content-Type"] == "application/problem+json" for answer in refused)
    assert len(agent.calls) == 1


async def test_another_method_is_rejected_with_the_right_one(tmp_path: Path) -> None:
    async with working(tmp_path) as (system, _, _, target):
        for method in ("GET", "PUT", "DELETE"):
            answer = await system.call(method, path_of(target))
            assert (answer.status, answer.headers["Allow"]) == (405, "POST")


async def test_no_key_is_needed_where_everything_else_needs_one(tmp_path: Path) -> None:
    await create_key(tmp_path)
    async with running_system(tmp_path, require_keys=True, public_url="http://trunkline.example") as system:
        target = system.embedded.api.push_notifications.target(TaskKey("none/only/0", 1))
        assert target is not None
        statuses = [
            (await system.call("POST", path_of(target), b"{}", {HEADER: target.token})).status,
            (await system.call("POST", path_of(target), b"{}")).status,
            (await system.call("GET", path_of(target))).status,
            (await system.call("GET", "/inbox")).status,
        ]
    assert statuses == [204, 404, 405, 401]


async def test_a_push_with_a_body_of_100_megabytes_counts_though_the_body_is_not_read(tmp_path: Path) -> None:
    async def much() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield bytes(1024 * 1024)

    async with working(tmp_path) as (system, agent, run_id, target):
        agent.script(jsonrpc_task("Sunny"))
        url = system.url + path_of(target)[1:]
        async with aiohttp.ClientSession() as session:
            try:
                async with session.post(url, data=much(), headers={HEADER: target.token}) as answer:
                    assert answer.status == 413
            except aiohttp.ClientConnectionError:
                # The server hangs up while the client still speaks.
                pass
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"


async def test_neither_the_address_nor_the_token_is_in_the_log(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with working(tmp_path) as (system, _, _, target):
            address = target.url.rpartition("/")[2]
            await system.call("POST", path_of(target), FORGED_TASK, {HEADER: target.token})
            await system.call("POST", path_of(target), FORGED_TASK, {HEADER: "wrong"})
            await system.call("GET", path_of(target))
            await system.call("POST", path_of(target) + "/more", FORGED_TASK, {HEADER: target.token})
    assert "push_notification_received" in {entry["event"] for entry in logs}
    assert address not in str(logs)
    assert address.partition(".")[2] not in str(logs)
    assert target.token not in str(logs)
