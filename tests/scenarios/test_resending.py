"""Nobody knows whether the agent has got a message: what is done about it, as the agent's `resend` says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import (
    RunningSystem,
    ScriptedAgent,
    jsonrpc_error,
    jsonrpc_task,
    running_system,
    simple_success,
)
from trunkline.testing.agents import Call, Hangup, Scripted
from trunkline.testing.system import objects_in, step_of

pytestmark = pytest.mark.anyio

LOST = Hangup()


async def start_one(system: RunningSystem, agent: ScriptedAgent, protocol: str, resend: str) -> str:
    await system.register("Agent", agent.url, protocol=protocol, resend=resend)
    retry: Json = {"max_attempts": 3, "backoff": "fixed", "first_delay": "10ms"}
    await system.save({"name": "one", "steps": {"only": {"agent": "Agent", "retry": retry}}})
    return await system.start("one", {"query": "weather"})


async def reasons(system: RunningSystem, run_id: str) -> list[str]:
    events = await system.items(f"/runs/{run_id}/events")
    found = [event["data"] for event in events if event["type"] == "StepProgress"]
    news = [said for data in found if isinstance(data, dict) for said in objects_in(data["news"])]
    return [str(said["text"]) for said in news if said["kind"] == "called_again"]


@pytest.mark.parametrize("resend", ["same_message", "ask_first"])
async def test_an_agent_that_cannot_be_asked_gets_the_same_message_and_the_history_says_why(
    system: RunningSystem, resend: str
) -> None:
    async with ScriptedAgent(LOST, simple_success({"text": "done"})) as agent:
        run_id = await start_one(system, agent, "simple-a2a", resend)
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert agent.calls[0].id == agent.calls[1].id
    (reason,) = await reasons(system, run_id)
    assert reason.startswith("The previous attempt got no answer. Sent again with the same message: ")


async def test_an_agent_that_is_not_to_be_called_twice_is_not(system: RunningSystem) -> None:
    async with ScriptedAgent(LOST, simple_success({"text": "done"})) as agent:
        run_id = await start_one(system, agent, "simple-a2a", "never")
        step = await system.wait_for_step(run_id, "only", {"OUTCOME_UNKNOWN", "COMPLETED"})
        assert step["status"] == "OUTCOME_UNKNOWN"
        await system.call("POST", f"/runs/{run_id}/steps/only/resolve", {"outcome": "failed"})
        run = await system.wait_for(run_id)
    assert run["status"] == "FAILED"
    assert len(agent.calls) == 1


async def test_an_agent_that_was_never_reached_is_called_whatever_its_policy_is(
    system: RunningSystem,
) -> None:
    async with ScriptedAgent(simple_success({"text": "done"})) as agent:
        url, port = agent.url, agent.port
    await system.register("Agent", url, protocol="simple-a2a", resend="never")
    retry: Json = {"max_attempts": 50, "backoff": "fixed", "first_delay": "50ms"}
    await system.save({"name": "one", "steps": {"only": {"agent": "Agent", "retry": retry}}})
    run_id = await system.start("one", {"query": "weather"})
    while step_of(await system.get(run_id), "only")["attempts"] in (0, 1):
        await asyncio.sleep(0.02)
    async with ScriptedAgent(simple_success({"text": "done"}), port=port) as agent:
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert len(agent.calls) == 1
    assert await reasons(system, run_id) == []


CARD: JsonObject = {
    "name": "Lister",
    "supportedInterfaces": [{"url": "", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    "capabilities": {},
    "skills": [],
}


async def test_an_agent_that_lists_its_tasks_is_asked_and_not_called_again(system: RunningSystem) -> None:
    def answer(call: Call) -> Scripted:
        done: Json = {
            "id": "remote-1",
            "contextId": call.message.get("contextId", "c"),
            "status": {"state": "TASK_STATE_COMPLETED"},
            "artifacts": [{"artifactId": "a", "parts": [{"text": "done"}]}],
        }
        match call.method:
            case "SendMessage":
                return LOST
            case "ListTasks":
                tasks: Json = {"tasks": [done], "totalSize": 1, "pageSize": 50, "nextPageToken": ""}
                return {"jsonrpc": "2.0", "id": call.id, "result": tasks}
            case _:
                return {"jsonrpc": "2.0", "id": call.id, "result": done}

    async with ScriptedAgent(answer) as agent:
        run_id = await start_one(system, agent, "a2a-1.0", "ask_first")
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert [call.method for call in agent.calls] == ["SendMessage", "ListTasks", "GetTask"]
    sent, listed, _ = agent.calls
    assert isinstance(params := listed.body["params"], dict)
    assert params["contextId"] == sent.message["contextId"]


async def test_an_agent_that_cannot_say_whether_it_has_the_task_gets_the_same_message(
    system: RunningSystem,
) -> None:
    calls: list[str] = []

    def answer(call: Call) -> Scripted:
        calls.append(str(call.method))
        if call.method == "ListTasks":
            return {"jsonrpc": "2.0", "id": call.id, "error": {"code": -32603, "message": "no list today"}}
        if calls.count("SendMessage") == 1:
            return LOST
        parts: Json = [{"text": "done"}]
        message: Json = {"messageId": "m", "role": "ROLE_AGENT", "parts": parts}
        return {"jsonrpc": "2.0", "id": call.id, "result": {"message": message}}

    async with ScriptedAgent(answer) as agent:
        run_id = await start_one(system, agent, "a2a-1.0", "ask_first")
        run = await system.wait_for(run_id)
    assert (run["status"], calls) == ("COMPLETED", ["SendMessage", "ListTasks", "SendMessage"])
    first, _, second = agent.calls
    assert first.message["messageId"] == second.message["messageId"]
    (reason,) = await reasons(system, run_id)
    assert "no list today" in reason


async def test_an_agent_that_has_lost_its_task_gets_the_same_message(system: RunningSystem) -> None:
    lost = jsonrpc_error(-32001, "Task not found")
    async with ScriptedAgent(jsonrpc_task("", state="working"), lost, jsonrpc_task("done")) as agent:
        run_id = await start_one(system, agent, "jsonrpc-2.0", "same_message")
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert [call.method for call in agent.calls] == ["message/send", "tasks/get", "message/send"]
    first, _, second = agent.calls
    assert first.message["messageId"] == second.message["messageId"]
    (reason,) = await reasons(system, run_id)
    assert reason.startswith("The previous attempt got no answer.")


@pytest.mark.embedded_only
async def test_a_process_that_died_in_a_call_leaves_the_same_message_to_the_next(tmp_path: Path) -> None:
    never = asyncio.Event()

    async def hold(call: Call) -> Scripted:
        await never.wait()
        return jsonrpc_task("late")(call)

    async with ScriptedAgent(hold) as agent:
        async with running_system(tmp_path / "data", stop_timeout="0s") as system:
            run_id = await start_one(system, agent, "jsonrpc-2.0", "ask_first")
            await agent.called()
        agent.script(jsonrpc_task("done"))
        async with running_system(tmp_path / "data") as system:
            run = await system.wait_for(run_id)
            (reason,) = await reasons(system, run_id)
    assert run["status"] == "COMPLETED"
    assert agent.calls[0].message["messageId"] == agent.calls[1].message["messageId"]
    assert reason.startswith("The previous process ended before it got an answer.")
