"""Agents that work for long, ask questions, and remember what was said before."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, jsonrpc_error, jsonrpc_task
from trunkline.testing.agents import Hangup, Reply, Script
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

WORKING = jsonrpc_task("", state="working")
ASKING = jsonrpc_task("Which city?", state="input-required")


async def start_one(system: RunningSystem, agent: ScriptedAgent, **fields: Json) -> str:
    await system.register("Agent", agent.url, protocol="jsonrpc-2.0", **fields)
    await system.save({"name": "one", "steps": {"only": {"agent": "Agent", "retry": {"max_attempts": 1}}}})
    return await system.start("one", {"query": "weather"})


async def test_while_an_agent_works_its_step_says_so(system: RunningSystem) -> None:
    async with ScriptedAgent(WORKING) as agent:
        run_id = await start_one(system, agent)
        await agent.called(2)
        while step_of(run := await system.get(run_id), "only")["waiting_for"] is None:
            await asyncio.sleep(0.02)
        agent.script(jsonrpc_task("done"))
        ended = await system.wait_for(run_id)
    assert run["status"] == "RUNNING"
    waiting_for = step_of(run, "only")["waiting_for"]
    assert isinstance(waiting_for, dict)
    assert waiting_for["kind"] == "remote"
    assert agent.calls[1].method == "tasks/get"
    assert agent.calls[1].body["params"] == {"id": "remote-1"}
    assert ended["status"] == "COMPLETED"
    assert step_of(ended, "only")["waiting_for"] is None


@pytest.mark.parametrize(
    "trouble", [pytest.param(Reply(503, b"busy"), id="HTTP 503"), pytest.param(Hangup(), id="no answer")]
)
async def test_a_question_how_it_stands_that_fails_is_asked_again(
    system: RunningSystem, trouble: Script
) -> None:
    async with ScriptedAgent(WORKING, trouble, jsonrpc_task("done")) as agent:
        run = await system.wait_for(await start_one(system, agent))
    assert run["status"] == "COMPLETED"
    assert [call.method for call in agent.calls] == ["message/send", "tasks/get", "tasks/get"]
    assert step_of(run, "only")["attempts"] == 1


async def test_an_agent_that_cannot_be_asked_fails_with_its_state(system: RunningSystem) -> None:
    async with ScriptedAgent(WORKING, jsonrpc_error(-32601, "Method not found")) as agent:
        run = await system.wait_for(await start_one(system, agent))
    assert run["status"] == "FAILED"
    error = error_of(run)
    assert (error["code"], error["message"]) == ("agent_task_unfinished", "Task state: working")
    assert len(agent.calls) == 2


async def test_an_agent_that_works_first_and_asks_then_waits_for_a_person(system: RunningSystem) -> None:
    async with ScriptedAgent(WORKING, ASKING, WORKING, jsonrpc_task("Sunny")) as agent:
        run_id = await start_one(system, agent)
        waiting = await system.wait_for(run_id, {"WAITING"})
        await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "Rome"})
        run = await system.wait_for(run_id)
    assert step_of(waiting, "only")["waiting_for"] == {"kind": "input", "text": "Which city?", "until": None}
    assert [call.method for call in agent.calls] == ["message/send", "tasks/get", "message/send", "tasks/get"]
    assert agent.calls[2].message["taskId"] == "remote-1"
    assert run["status"] == "COMPLETED"


async def test_an_agent_that_needs_a_login_waits_for_a_person_too(system: RunningSystem) -> None:
    asking = jsonrpc_task("Log in at example.com", state="auth-required")
    async with ScriptedAgent(asking, jsonrpc_task("welcome")) as agent:
        run_id = await start_one(system, agent)
        waiting = await system.wait_for(run_id, {"WAITING"})
        await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "done"})
        run = await system.wait_for(run_id)
    waiting_for = step_of(waiting, "only")["waiting_for"]
    assert waiting_for == {"kind": "auth", "text": "Log in at example.com", "until": None}
    assert run["status"] == "COMPLETED"


REPLIES: list[tuple[Json, Json]] = [
    ({"text": "Rome"}, [{"kind": "text", "text": "Rome"}]),
    ({"data": {"city": "Rome"}}, [{"kind": "data", "data": {"city": "Rome"}}]),
    ({"text": "", "data": {}}, [{"kind": "text", "text": ""}, {"kind": "data", "data": {}}]),
    (
        {
            "parts": [
                {"kind": "text", "text": "Rome"},
                {"kind": "file", "file": {"uri": "https://a.example/b"}},
            ]
        },
        [{"kind": "text", "text": "Rome"}, {"kind": "file", "file": {"uri": "https://a.example/b"}}],
    ),
]


@pytest.mark.parametrize(("reply", "parts"), REPLIES)
async def test_a_reply_reaches_the_agent_as_it_was_given(
    shared_system: RunningSystem, reply: JsonObject, parts: Json
) -> None:
    system = shared_system
    async with ScriptedAgent(ASKING, jsonrpc_task("Sunny")) as agent:
        await system.call("DELETE", "/agents/Agent")
        run_id = await start_one(system, agent)
        await system.wait_for(run_id, {"WAITING"})
        answer = await system.call("POST", f"/runs/{run_id}/steps/only/reply", reply)
        assert answer.status == 202
        await system.wait_for(run_id)
    assert agent.calls[1].message["parts"] == parts
    assert agent.calls[1].message["taskId"] == "remote-1"


async def test_a_second_question_waits_again(system: RunningSystem) -> None:
    second = jsonrpc_task("Which day?", state="input-required")
    async with ScriptedAgent(ASKING, second, jsonrpc_task("Sunny")) as agent:
        run_id = await start_one(system, agent)
        await system.wait_for(run_id, {"WAITING"})
        await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "Rome"})
        await agent.called(2)
        waiting = await system.wait_for(run_id, {"WAITING"})
        await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "Monday"})
        run = await system.wait_for(run_id)
    waiting_for = step_of(waiting, "only")["waiting_for"]
    assert isinstance(waiting_for, dict)
    assert waiting_for["text"] == "Which day?"
    assert run["status"] == "COMPLETED"
    assert step_of(run, "only")["attempts"] == 1
    assert len({str(call.message["messageId"]) for call in agent.calls}) == 3


async def test_a_reply_whose_answer_is_lost_is_sent_again_as_the_same_message(system: RunningSystem) -> None:
    async with ScriptedAgent(ASKING, Hangup(), jsonrpc_task("Sunny")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        retry: JsonObject = {"max_attempts": 3, "first_delay": "10ms"}
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent", "retry": retry}}})
        run_id = await system.start("one", {"query": "weather"})
        await system.wait_for(run_id, {"WAITING"})
        await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "Rome"})
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert agent.calls[1].body == agent.calls[2].body
    assert agent.calls[2].message["parts"] == [{"kind": "text", "text": "Rome"}]


async def test_a_step_that_asks_nothing_takes_no_reply(system: RunningSystem) -> None:
    async with ScriptedAgent(WORKING) as agent:
        run_id = await start_one(system, agent)
        await agent.called()
        working = await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "Rome"})
        unknown = await system.call("POST", f"/runs/{run_id}/steps/other/reply", {"text": "Rome"})
        agent.script(jsonrpc_task("done"))
        await system.wait_for(run_id)
        ended = await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "Rome"})
    assert working.status == ended.status == 409
    assert "is not waiting for input" in str(ended.json["detail"])
    assert unknown.status == 404


async def test_of_two_simultaneous_replies_one_counts(system: RunningSystem) -> None:
    async with ScriptedAgent(ASKING, jsonrpc_task("Sunny")) as agent:
        run_id = await start_one(system, agent)
        await system.wait_for(run_id, {"WAITING"})
        path = f"/runs/{run_id}/steps/only/reply"
        answers = [system.call("POST", path, {"text": city}) for city in ("Rome", "Oslo")]
        statuses = sorted([(await answer).status for answer in answers])
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert statuses[0] == 202
    assert len(agent.calls) == 2


CONTEXTS = """
name: talk
steps:
  first: {agent: Agent, context: CONTEXT}
  second: {agent: Agent, context: CONTEXT, needs: [first]}
  other: {agent: Other, context: CONTEXT, needs: [second]}
"""


@pytest.mark.parametrize(("context", "sent_again"), [("run", "c-1"), ("step", None), ("none", None)])
async def test_a_conversation_continues_in_the_next_step_by_default(
    shared_system: RunningSystem, context: str, sent_again: str | None
) -> None:
    system = shared_system
    async with (
        ScriptedAgent(jsonrpc_task("a", context_id="c-1")) as agent,
        ScriptedAgent(jsonrpc_task("b", context_id="c-2")) as other,
    ):
        for name, url in (("Agent", agent.url), ("Other", other.url)):
            await system.call("DELETE", f"/agents/{name}")
            await system.register(name, url, protocol="jsonrpc-2.0")
        await system.save(CONTEXTS.replace("CONTEXT", context))
        await system.run("talk")
        await system.run("talk")
    assert [call.message.get("contextId") for call in agent.calls] == [None, sent_again, None, sent_again]
    assert [call.message.get("contextId") for call in other.calls] == [None, None]


async def test_a_retried_step_keeps_its_own_conversation(system: RunningSystem) -> None:
    failed = jsonrpc_task("no", state="failed", context_id="c-9")
    async with ScriptedAgent(failed, jsonrpc_task("yes", context_id="c-9")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        retry: JsonObject = {"max_attempts": 2, "first_delay": "10ms", "on": ["any"]}
        step: JsonObject = {"agent": "Agent", "context": "step", "retry": retry}
        await system.save({"name": "one", "steps": {"only": step}})
        run = await system.run("one")
    assert run["status"] == "COMPLETED"
    assert [call.message.get("contextId") for call in agent.calls] == [None, "c-9"]
