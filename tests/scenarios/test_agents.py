"""Registered agents in action: how they are called, how many at a time, and what changes while runs are under way."""

from __future__ import annotations

import asyncio
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from trunkline.bridge.agents.resolver import PROCESS_HEADER
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.services.operations.process_heartbeat import PROCESS_NAME
from trunkline.testing import Call, RunningSystem, ScriptedAgent, jsonrpc_task, running_system, simple_success
from trunkline.testing.agents import Reply
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent", "retry": {"max_attempts": 1}}}}


@pytest.mark.parametrize(
    ("auth_type", "auth_config", "header", "value"),
    [
        ("bearer", {"token": "t-123456"}, "Authorization", "Bearer t-123456"),
        ("api_key", {"name": "X-Key", "value": "k-123456", "in": "header"}, "X-Key", "k-123456"),
        (
            "basic",
            {"username": "ann", "password": "p-123456"},
            "Authorization",
            f"Basic {b64encode(b'ann:p-123456').decode()}",
        ),
        ("headers", {"X-Tenant": "t-1", "X-Signature": "s-123456"}, "X-Signature", "s-123456"),
    ],
)
async def test_credentials_reach_the_agent_and_its_card(
    shared_system: RunningSystem, auth_type: str, auth_config: dict[str, str], header: str, value: str
) -> None:
    name = f"Agent {auth_type}"
    async with ScriptedAgent(simple_success("in")) as agent:
        await shared_system.register(name, agent.url, auth_type=auth_type, auth_config={**auth_config})
        await shared_system.save({"name": auth_type, "steps": {"only": {"agent": name}}})
        run = await shared_system.run(auth_type)
    assert run["status"] == "COMPLETED"
    assert agent.calls[0].headers[header] == value
    assert agent.card_requests[0][header] == value


async def test_an_api_key_can_travel_in_the_query(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("in")) as agent:
        config: JsonObject = {"name": "key", "value": "k 1/2", "in": "query"}
        url = f"{agent.url}?tenant=7"
        await system.register("Agent", url, protocol="simple-a2a", auth_type="api_key", auth_config=config)
        await system.save(ONE)
        run = await system.run("one")
        (exchange,) = await system.items(f"/runs/{run['id']}/wire")
    assert agent.calls[0].path == "/agent?tenant=7&key=k%201%2F2"
    assert isinstance(exchange["request"], dict)
    assert exchange["request"]["url"] == f"{url}&key=$TRUNKLINE_SECRET_AGENT"


async def test_every_request_has_the_headers_that_were_promised(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_task("ok")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE)
        await system.run("one")
    headers = agent.calls[0].headers
    assert headers["Content-Type"] == "application/json"
    assert headers["Accept"] == "application/json"
    assert headers["X-Correlation-ID"]
    assert "A2A-Version" not in headers
    assert PROCESS_HEADER not in headers


@pytest.mark.embedded_only
async def test_requests_name_the_calling_process_where_that_is_wanted(tmp_path: Path) -> None:
    async with (
        running_system(tmp_path / "data", process_header=True) as system,
        ScriptedAgent(jsonrpc_task("", state="working"), jsonrpc_task("ok")) as agent,
    ):
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE)
        await system.run("one")
    assert [call.headers[PROCESS_HEADER] for call in agent.calls] == [PROCESS_NAME] * 2


class ConcurrentAgent:
    """Counts who is inside at the same time; the first wait until so many are."""

    def __init__(self, expected: int) -> None:
        self.most = 0
        self._inside = 0
        self._expected = expected
        self._there = asyncio.Event()

    async def __call__(self, call: Call) -> Json:
        self._inside += 1
        self.most = max(self.most, self._inside)
        if self._inside == self._expected:
            self._there.set()
        await self._there.wait()
        self._inside -= 1
        return simple_success("ok")(call)


@pytest.mark.parametrize("limit", [1, 3])
async def test_an_agent_gets_no_more_calls_at_a_time_than_it_takes(system: RunningSystem, limit: int) -> None:
    concurrent_agent = ConcurrentAgent(limit)
    async with ScriptedAgent(concurrent_agent) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a", max_concurrency=limit)
        steps: JsonObject = {f"step_{number}": {"agent": "Agent"} for number in range(5)}
        await system.save({"name": "many", "steps": steps})
        runs = await asyncio.gather(*(system.run("many") for _ in range(3)))
    assert {str(run["status"]) for run in runs} == {"COMPLETED"}
    assert len(agent.calls) == 15
    assert concurrent_agent.most == limit


async def test_a_busy_agent_holds_up_no_other(system: RunningSystem) -> None:
    stuck = asyncio.Event()

    async def wait(call: Call) -> Json:
        await stuck.wait()
        return simple_success("late")(call)

    async with ScriptedAgent(wait) as slow, ScriptedAgent(simple_success("quick")) as quick:
        await system.register("Slow", slow.url, protocol="simple-a2a", max_concurrency=1)
        await system.register("Quick", quick.url, protocol="simple-a2a")
        await system.save({"name": "slow", "steps": {"only": {"agent": "Slow"}}})
        await system.save({"name": "quick", "steps": {"only": {"agent": "Quick"}}})
        late = [await system.start("slow") for _ in range(5)]
        await slow.called()
        assert (await system.run("quick"))["status"] == "COMPLETED"
        await system.wait_for_metric("trunkline_queue_depth", 4, queue="tasks_queued")
        stuck.set()
        assert [(await system.wait_for(run_id))["status"] for run_id in late] == ["COMPLETED"] * 5


async def test_an_unregistered_agent_is_named_in_the_error(system: RunningSystem) -> None:
    saved = await system.save(ONE)
    run = await system.run("one")
    assert "Agent" in str(saved["warnings"])
    assert run["status"] == "FAILED"
    assert error_of(run)["code"] == "agent_unknown"
    assert error_of(run)["message"] == "No agent is registered under the name Agent."
    assert "trunkline agents create" in str(error_of(run)["fix"])


async def test_an_agent_registered_while_a_step_waits_to_try_again_is_called(system: RunningSystem) -> None:
    retry: JsonObject = {"max_attempts": 100, "backoff": "fixed", "first_delay": "50ms"}
    await system.save({"name": "one", "steps": {"only": {"agent": "Agent", "retry": retry}}})
    run_id = await system.start("one")
    await system.wait_for_step(run_id, "only", {"WAITING"})
    async with ScriptedAgent(simple_success("here")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"


async def test_an_agent_that_is_updated_is_called_the_new_way_at_once(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("old")) as old, ScriptedAgent(jsonrpc_task("new")) as new:
        await system.register(
            "Agent", old.url, protocol="simple-a2a", auth_type="bearer", auth_config={"token": "old-secret"}
        )
        await system.save(ONE)
        await system.run("one")
        patch: JsonObject = {
            "url": new.url,
            "protocol": "jsonrpc-2.0",
            "auth_config": {"token": "new-secret"},
        }
        answer = await system.call("PATCH", "/agents/Agent", patch)
        assert answer.status == 200
        run = await system.run("one")
    assert step_of(run, "only")["output"]
    assert len(old.calls) == 1
    assert new.calls[0].headers["Authorization"] == "Bearer new-secret"
    assert new.calls[0].method == "message/send"


async def test_an_agent_deleted_while_its_question_is_open_fails_the_step_by_name(
    system: RunningSystem,
) -> None:
    async with ScriptedAgent(jsonrpc_task("Which?", state="input-required")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE)
        run_id = await system.start("one")
        await system.wait_for(run_id, {"WAITING"})
        assert (await system.call("DELETE", "/agents/Agent")).status == 204
        assert (await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "x"})).status == 202
        run = await system.wait_for(run_id)
    assert run["status"] == "FAILED"
    assert error_of(run)["code"] == "agent_unknown"
    assert len(agent.calls) == 1


async def test_an_agent_deleted_while_it_works_fails_the_step_by_name(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_task("", state="working")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE)
        run_id = await system.start("one")
        await agent.called_for("tasks/get")
        await system.call("DELETE", "/agents/Agent")
        run = await system.wait_for(run_id)
    assert run["status"] == "FAILED"
    assert error_of(run)["code"] == "agent_unknown"


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"input_mode": "text"}, {"kind": "text", "text": "hi"}),
        ({"input_mode": "json"}, {"kind": "text", "text": '{"text":"hi","n":1}'}),
        ({"input_mode": "data"}, {"kind": "data", "data": {"text": "hi", "n": 1}}),
    ],
)
async def test_the_protocol_config_shapes_the_request(
    shared_system: RunningSystem, config: dict[str, str], part: Json
) -> None:
    name = config["input_mode"]
    async with ScriptedAgent(jsonrpc_task('{"ok":true}')) as agent:
        protocol_config: JsonObject = {**config, "output_mode": "data", "method": "message/send"}
        await shared_system.register(name, agent.url, protocol="jsonrpc-2.0", protocol_config=protocol_config)
        await shared_system.save({"name": name, "steps": {"only": {"agent": name}}})
        run = await shared_system.run(name, {"text": "hi", "n": 1})
    assert agent.calls[0].message["parts"] == [part]
    assert run["output"] == {"ok": True}


async def test_the_health_of_an_agent_is_asked_without_giving_it_work(system: RunningSystem) -> None:
    async with ScriptedAgent(Reply(500)) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        healthy = (await system.call("GET", "/agents/Agent/health")).json
    unhealthy = (await system.call("GET", "/agents/Agent/health")).json
    assert healthy["status"] == "healthy"
    assert unhealthy["status"] == "unhealthy"
    assert not agent.calls


@pytest.mark.embedded_only
async def test_the_health_of_a_program_is_whether_it_can_be_started(tmp_path: Path) -> None:
    commands = {"there": [sys.executable], "gone": [str(tmp_path / "nothing")]}
    async with running_system(tmp_path / "data", stdio_commands=encode(commands).decode()) as system:
        found: dict[str, object] = {}
        for name in ("there", "gone", "unknown"):
            await system.register(name, f"stdio:{name}", transport="stdio", protocol="jsonrpc-2.0")
            health = (await system.call("GET", f"/agents/{name}/health")).json
            found[name] = (health["status"], health["detail"])
    assert found == {
        "there": ("healthy", "The program there can be started."),
        "gone": ("unhealthy", "The program gone cannot be started: its command does not exist."),
        "unknown": ("unhealthy", "TRUNKLINE_STDIO_COMMANDS has no program unknown."),
    }


async def test_a_long_task_holds_its_slot_until_it_ends(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_task("", state="working")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0", max_concurrency=1)
        await system.save(ONE)
        first = await system.start("one")
        await agent.called_for("tasks/get")
        second = await system.start("one")
        await agent.called(4)
        sent = [call for call in agent.calls if call.method == "message/send"]
        agent.script(jsonrpc_task("done"))
        runs = [await system.wait_for(run_id) for run_id in (first, second)]
    assert [call.id for call in sent] == [f"{first}/only/0"]
    assert [run["status"] for run in runs] == ["COMPLETED"] * 2
