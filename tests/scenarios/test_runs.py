"""Runs from their start to their end, with real agents over HTTP."""

from __future__ import annotations

import pytest

from trunkline.testing import (
    RunningSystem,
    ScriptedAgent,
    jsonrpc_error,
    jsonrpc_task,
    simple_error,
    simple_success,
)
from trunkline.testing.agents import Reply
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

MIXED = """
name: mixed
steps:
  research:
    agent: Old
    input: {query: "${ input.topic }"}
  write:
    agent: New
    input: {text: "Write about ${ input.topic }: ${ steps.research.output.text }"}
output: ${ steps.write.output.text }
"""


async def test_a_run_crosses_two_dialects(system: RunningSystem) -> None:
    async with (
        ScriptedAgent(simple_success({"result": "facts"})) as old,
        ScriptedAgent(jsonrpc_task("an article")) as new,
    ):
        await system.register("Old", old.url, protocol="simple-a2a")
        await system.register("New", new.url, protocol="jsonrpc-2.0")
        await system.save(MIXED)

        run = await system.run("mixed", {"topic": "bees"})

    assert run["status"] == "COMPLETED"
    assert run["output"] == "an article"
    assert step_of(run, "research")["protocol"] == "simple-a2a"
    assert step_of(run, "write")["protocol"] == "jsonrpc-2.0"
    assert old.calls[0].body == {"task_id": f"{run['id']}/research/0", "input": {"query": "bees"}}
    assert new.calls[0].id == f"{run['id']}/write/0"
    assert new.calls[0].message["messageId"] == f"msg-{run['id']}/write/0"
    assert new.calls[0].message["parts"] == [{"kind": "text", "text": "Write about bees: facts"}]
    assert new.calls[0].headers["X-Correlation-ID"] == run["correlation_id"]


ONE_STEP = """
name: one
steps:
  only:
    agent: Agent
    retry: {max_attempts: 3, backoff: fixed, first_delay: 10ms}
"""


async def test_a_failure_that_got_an_answer_is_retried_with_a_new_message(system: RunningSystem) -> None:
    unavailable = Reply(503, b"busy", {"Content-Type": "text/plain"})
    async with ScriptedAgent(unavailable, unavailable, jsonrpc_task("done")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE_STEP)
        run = await system.run("one")
    assert run["status"] == "COMPLETED"
    assert step_of(run, "only")["attempts"] == 3
    assert [call.id for call in agent.calls] == [f"{run['id']}/only/{failures}" for failures in range(3)]


async def test_a_failure_that_is_not_worth_a_retry_fails_the_run(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_error(-32602, "no such city")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE_STEP)
        run = await system.run("one")
    assert run["status"] == "FAILED"
    error = run["error"]
    assert isinstance(error, dict)
    assert error["code"] == "agent_jsonrpc_error"
    assert error["message"] == "JSON-RPC Error -32602: no such city"
    assert error["jsonrpc_code"] == -32602
    assert error["step"] == "only"
    assert len(agent.calls) == 1


async def test_an_agent_that_works_first_is_asked_until_it_is_done(system: RunningSystem) -> None:
    async with ScriptedAgent(
        jsonrpc_task("", state="working"), jsonrpc_task("", state="working"), jsonrpc_task("at last")
    ) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE_STEP)
        run = await system.run("one")
    assert run["status"] == "COMPLETED"
    assert [call.method for call in agent.calls] == ["message/send", "tasks/get", "tasks/get"]
    assert step_of(run, "only")["attempts"] == 1


async def test_an_agent_that_never_ends_fails_with_its_state(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_task("", state="working")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0", timeout_ms=300)
        await system.save(ONE_STEP)
        run = await system.run("one")
    assert run["status"] == "FAILED"
    assert isinstance(run["error"], dict)
    assert run["error"]["message"] == "Task state: working"


async def test_a_question_waits_for_a_person_and_the_reply_goes_on_with_the_same_task(
    system: RunningSystem,
) -> None:
    question = jsonrpc_task("Which city?", state="input-required", remote_id="r-7", context_id="c-7")
    async with ScriptedAgent(question, jsonrpc_task("Sunny", remote_id="r-7", context_id="c-7")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE_STEP)
        run_id = await system.start("one", {"query": "weather"})
        waiting = await system.wait_for(run_id, {"WAITING"})
        step = step_of(waiting, "only")
        assert step["status"] == "WAITING"
        assert step["waiting_for"] == {"kind": "input", "text": "Which city?", "until": None}

        answer = await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "Rome"})
        assert answer.status == 202
        run = await system.wait_for(run_id)

    assert run["status"] == "COMPLETED"
    reply = agent.calls[1].message
    assert reply["taskId"] == "r-7"
    assert reply["contextId"] == "c-7"
    assert reply["parts"] == [{"kind": "text", "text": "Rome"}]
    assert reply["messageId"] != agent.calls[0].message["messageId"]


async def test_simple_errors_fail_the_step_with_the_agents_words(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_error("out of paper")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(ONE_STEP)
        run = await system.run("one")
    assert run["status"] == "FAILED"
    assert isinstance(run["error"], dict)
    assert "out of paper" in str(run["error"]["message"])
