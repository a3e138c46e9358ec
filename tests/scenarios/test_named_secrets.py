"""Named secrets in whole runs: they reach the agent, and only from the places that the workflow's definition has."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs
from structlog.typing import EventDict

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask
from trunkline.protocols import ProtocolAdapterFactory, SimpleA2AAdapter
from trunkline.telemetry import log_events
from trunkline.testing import (
    Call,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_task,
    running_system,
    simple_error,
    simple_success,
)
from trunkline.testing.agents import Hangup, Reply
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

CANARY = "canary-xoxb-4711"
SECRET: JsonObject = {"$secret": "slack-bot"}
ONCE: JsonObject = {"max_attempts": 1}


async def put(system: RunningSystem, name: str = "slack-bot", value: str = CANARY) -> JsonObject:
    answer = await system.call("PUT", f"/secrets/{name}", {"value": value})
    assert answer.status in {200, 201}, answer.body
    return answer.json


async def save(system: RunningSystem, step_input: Json, **fields: Json) -> None:
    step: JsonObject = {"agent": "A", "input": step_input, **fields}
    await system.save({"name": "w", "steps": {"only": step}})


async def wire_of(system: RunningSystem, run: JsonObject) -> str:
    return (await system.call("GET", f"/runs/{run['id']}/wire?limit=1000")).body.decode()


def said(call: Call) -> str:
    return encode(call.body).decode()


async def test_a_secret_reaches_the_agent_and_is_shown_by_its_name_alone(system: RunningSystem) -> None:
    await put(system)
    async with ScriptedAgent(simple_success({"ok": True})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        await save(system, {"text": "${ input.text }", "bot_token": SECRET})
        run = await system.run("w", {"text": "hello"})
    assert run["status"] == "COMPLETED"
    assert agent.calls[0].body["input"] == {"text": "hello", "bot_token": CANARY}
    assert step_of(run, "only")["input"] == {"text": "hello", "bot_token": SECRET}
    (exchange,) = await system.items(f"/runs/{run['id']}/wire")
    assert "[redacted]" in str(exchange["request"])
    assert exchange["notes"] == ["The request body contained secrets, which are not shown: slack-bot."]


def a2a_card(agent: ScriptedAgent, version: str) -> JsonObject:
    if version == "0.3":
        return {"name": "A", "protocolVersion": "0.3.0", "url": agent.url}
    interface: JsonObject = {"url": agent.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return {"name": "A", "supportedInterfaces": [interface], "skills": [], "version": "1"}


def a2a_1(call: Call) -> Json:
    message: Json = {"role": "ROLE_AGENT", "messageId": "m", "parts": [{"text": f"got {said(call)}"}]}
    return {"jsonrpc": "2.0", "id": call.id, "result": {"message": message}}


def repeat(call: Call) -> Json:
    return simple_success({"said": said(call)})(call)


def mirror(call: Call) -> Json:
    return jsonrpc_task(f"got {said(call)}")(call)


def result(call: Call) -> Json:
    return {"jsonrpc": "2.0", "id": call.id, "result": {"status": "success", "said": said(call)}}


@pytest.mark.parametrize(
    ("protocol", "config", "script"),
    [
        ("simple-a2a", {}, repeat),
        ("jsonrpc-2.0", {}, mirror),
        ("jsonrpc-2.0", {"input_mode": "json"}, mirror),
        ("jsonrpc-2.0", {"input_mode": "data"}, mirror),
        ("jsonrpc-2.0", {"method": "execute_task", "params": "input"}, result),
        ("auto 0.3", {}, mirror),
        ("auto 1.0", {}, a2a_1),
    ],
    ids=["simple", "message", "message as json", "message as data", "call", "card 0.3", "card 1.0"],
)
async def test_a_secret_travels_in_every_dialect_and_comes_back_in_none(
    system: RunningSystem, protocol: str, config: JsonObject, script: Callable[[Call], Json]
) -> None:
    await put(system)
    async with ScriptedAgent(script) as agent:
        pinned, _, version = protocol.partition(" ")
        if version:
            agent.publish(a2a_card(agent, version))
        await system.register("A", agent.url, protocol=pinned, protocol_config=config)
        await save(system, {"text": "hello", "deep": [{"bot_token": SECRET}]}, retry=ONCE)
        run = await system.run("w")
    assert run["status"] == "COMPLETED", run
    assert CANARY in said(agent.calls[0])
    assert "$secret" not in said(agent.calls[0])
    shown = f"{run} {await wire_of(system, run)}"
    assert CANARY not in shown
    assert "[redacted]" in str(run["output"])


async def data_in_the_run(system: RunningSystem) -> JsonObject:
    await save(system, {"given": "${ input.x }", "whole": "${ input }"})
    return await system.run("w", {"x": SECRET, "bot_token": SECRET})


async def data_as_the_input(system: RunningSystem) -> JsonObject:
    await system.save({"name": "w", "steps": {"only": {"agent": "A"}}})
    return await system.run("w", SECRET)


async def data_of_an_expression(system: RunningSystem) -> JsonObject:
    await save(system, "${ {'bot_token': {'$secret': 'slack-bot'}} }")
    return await system.run("w")


async def data_of_an_agent(system: RunningSystem) -> JsonObject:
    steps: JsonObject = {
        "first": {"agent": "Says"},
        "only": {"agent": "A", "input": "${ steps.first.output.data }"},
    }
    await system.save({"name": "w", "steps": steps})
    return await system.run("w")


async def data_of_a_retry(system: RunningSystem) -> JsonObject:
    await system.save({"name": "w", "steps": {"only": {"agent": "A", "input": {"t": "${ input.t }"}}}})
    first = await system.run("w", {"t": "text"})
    answer = await system.call(
        "POST", f"/runs/{first['id']}/retry", {"from_step": "only", "input": {"t": SECRET}}
    )
    return await system.wait_for(str(answer.json["id"]))


@pytest.mark.parametrize(
    "start",
    [data_in_the_run, data_as_the_input, data_of_an_expression, data_of_an_agent, data_of_a_retry],
)
async def test_what_arrives_as_data_is_never_a_secret(
    system: RunningSystem, start: Callable[[RunningSystem], Awaitable[JsonObject]]
) -> None:
    await put(system)
    async with (
        ScriptedAgent(simple_success({"ok": True})) as agent,
        ScriptedAgent(simple_success({"bot_token": SECRET})) as says,
    ):
        await system.register("A", agent.url, protocol="simple-a2a")
        await system.register("Says", says.url, protocol="simple-a2a")
        run = await start(system)
    assert run["status"] == "COMPLETED", run
    texts = [said(call) for call in agent.calls]
    assert '{"$secret":"slack-bot"}' in texts[-1]
    assert CANARY not in "".join(texts)


async def test_a_reply_is_data_and_what_the_agent_repeats_in_the_conversation_is_hidden(
    system: RunningSystem,
) -> None:
    await put(system)
    asks = jsonrpc_task("Which channel?", state="input-required")
    async with ScriptedAgent(asks, jsonrpc_task(f"posted with {CANARY}")) as agent:
        await system.register("A", agent.url, protocol="jsonrpc-2.0")
        await save(system, {"text": "post", "data": SECRET})
        run_id = await system.start("w")
        await system.wait_for(run_id, {"WAITING"})
        reply = await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"data": SECRET})
        assert reply.status == 202
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    first, second = (said(call) for call in agent.calls)
    assert CANARY in first
    assert CANARY not in second
    assert '{"$secret":"slack-bot"}' in second
    shown = f"{run} {await wire_of(system, run)}"
    assert CANARY not in shown
    assert "posted with [redacted]" in shown


async def test_without_the_secret_nothing_is_sent_and_a_retry_after_it_is_set_goes_through(
    system: RunningSystem,
) -> None:
    async with ScriptedAgent(simple_success({"ok": True})) as agent:
        await system.register("A", agent.url)
        await save(system, {"t": SECRET}, retry={"max_attempts": 3, "on": ["any", "no_answer"]})
        run = await system.run("w")
        assert (agent.calls, agent.card_requests) == ([], [])
        error = error_of(run)
        assert (error["code"], error["message"]) == ("secret_missing", "The secret slack-bot does not exist.")
        assert "trunkline secrets set slack-bot" in str(error["fix"])
        assert step_of(run, "only")["attempts"] == 1
        await put(system)
        answer = await system.call("POST", f"/runs/{run['id']}/retry", {})
        again = await system.wait_for(str(answer.json["id"]))
    assert again["status"] == "COMPLETED"
    assert CANARY in said(agent.calls[0])


async def test_a_changed_secret_is_sent_by_the_next_call_and_the_one_before_it_stays_hidden(
    system: RunningSystem,
) -> None:
    await put(system)
    async with ScriptedAgent(simple_error(f"{CANARY} and next-value are no good")) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        await save(system, {"t": SECRET}, retry=ONCE)
        await system.run("w")
        await put(system, value="next-value")
        run = await system.run("w")
    assert [CANARY in said(call) for call in agent.calls] == [True, False]
    assert "next-value" in said(agent.calls[1])
    assert error_of(run)["message"] == "[redacted] and [redacted] are no good"


async def test_a_call_that_is_made_again_carries_the_secret_again(system: RunningSystem) -> None:
    await put(system)
    cut = Hangup(f"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{CANARY}".encode())
    busy = Reply(503, f"no: {CANARY}".encode(), {"X-Echo": CANARY})
    async with ScriptedAgent(cut, busy, simple_success({"t": CANARY})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        await save(system, {"t": SECRET}, retry={"first_delay": "1ms", "jitter": False})
        run = await system.run("w")
    assert run["status"] == "COMPLETED"
    assert [CANARY in said(call) for call in agent.calls] == [True] * 3
    assert CANARY not in f"{run} {await wire_of(system, run)}"


async def test_a_long_task_is_not_asked_while_what_it_repeats_could_not_be_hidden(
    system: RunningSystem,
) -> None:
    await put(system)
    with capture_logs() as logs:
        async with ScriptedAgent(jsonrpc_task(f"I have {CANARY}", state="working")) as agent:
            await system.register("A", agent.url, protocol="jsonrpc-2.0")
            await save(system, {"text": "x", "t": SECRET}, timeout="60s")
            run_id = await system.start("w")
            await agent.called_for("tasks/get")
            assert (await system.call("DELETE", "/secrets/slack-bot")).status == 204
            await logged(logs, log_events.SECRET_UNAVAILABLE, 1)
            asked = len(agent.calls)
            await logged(logs, log_events.SECRET_UNAVAILABLE, 3)
            assert len(agent.calls) == asked
            agent.script(jsonrpc_task(f"done with {CANARY}"))
            await put(system)
            run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    events = await system.items(f"/runs/{run_id}/events")
    shown = f"{run} {events} {await wire_of(system, run)} {logs}"
    assert CANARY not in shown
    assert "done with [redacted]" in shown


async def logged(logs: list[EventDict], event: str, times: int) -> None:
    """Waits until the log has so many of these lines."""
    while sum(line["event"] == event for line in logs) < times:
        await asyncio.sleep(0.01)


async def test_an_agent_that_is_cancelled_cannot_show_the_secret(system: RunningSystem) -> None:
    await put(system)

    def works_until_told(call: Call) -> Json:
        state = "canceled" if call.method == "tasks/cancel" else "working"
        return jsonrpc_task(f"{state} with {CANARY}", state=state)(call)

    async with ScriptedAgent(works_until_told) as agent:
        await system.register("A", agent.url, protocol="jsonrpc-2.0")
        await save(system, {"text": "x", "t": SECRET}, timeout="60s")
        run_id = await system.start("w")
        await agent.called_for("tasks/get")
        await system.call("POST", f"/runs/{run_id}/cancel")
        run = await system.wait_for(run_id)
    assert run["status"] == "CANCELLED"
    wire = await wire_of(system, run)
    assert "canceled with [redacted]" in wire
    assert CANARY not in wire


async def test_a_call_with_a_secret_does_not_travel_with_others(system: RunningSystem) -> None:
    await put(system)

    def refuse(call: Call) -> Reply:
        # Repeats whatever came in the same request.
        return Reply(500, said(call).encode(), {"Content-Type": "text/plain"})

    async with ScriptedAgent(refuse) as agent:
        batch: JsonObject = {"batch": {"max": 2, "wait_ms": 200}}
        await system.register("A", agent.url, protocol="jsonrpc-2.0", protocol_config=batch)
        await put(system, "other", "canary-of-the-other")
        step: JsonObject = {"agent": "A", "retry": ONCE, "on_error": "continue"}
        steps: JsonObject = {
            "one": {**step, "input": {"t": SECRET}},
            "two": {**step, "input": {"t": {"$secret": "other"}}},
        }
        await system.save({"name": "w", "steps": steps})
        run = await system.run("w")
    # The scripted agent takes a batch, which is a list, for a call without a method.
    assert [call.method for call in agent.calls] == ["message/send"] * 2
    assert "canary" not in f"{run} {await wire_of(system, run)}"


NOISY = """
import json, sys
for line in sys.stdin:
    task = json.loads(line)
    print("got", line, file=sys.stderr, flush=True)
    print("no answer:", line, flush=True)
    print(json.dumps({"task_id": task["task_id"], "status": "success", "output": task["input"]}), flush=True)
"""


async def test_a_program_that_prints_what_it_got_does_not_bring_it_into_the_log(tmp_path: Path) -> None:
    commands = {"noisy": {"command": [sys.executable, "-c", NOISY]}}
    with capture_logs() as logs:
        async with running_system(tmp_path / "data", stdio_commands=commands) as system:
            await put(system)
            await system.register("A", "stdio:noisy", transport="stdio", protocol="simple-a2a")
            # Under a name that tells nothing.
            await save(system, {"text": "hello", "anything": SECRET})
            run = await system.run("w")
            shown = f"{run} {await wire_of(system, run)}"
            await logged(logs, log_events.PROGRAM_OUTPUT, 1)
    assert run["status"] == "COMPLETED", run
    assert "[redacted]" in str(run["output"])
    assert CANARY not in f"{shown} {logs}"


async def test_a_zone_gets_its_token_and_no_other_host_does(system: RunningSystem) -> None:
    await put(system)

    def posted(call: Call) -> Json:
        result: JsonObject = {"status": "success", "response_text": f"posted with {CANARY}"}
        return {"jsonrpc": "2.0", "id": call.id, "result": result}

    async with ScriptedAgent(posted) as agent:
        await system.register("A", agent.url, protocol="jsonrpc-2.0", protocol_config={"profile": "slack"})
        await save(system, {"channel": "C1", "text": "hi", "bot_token": SECRET}, retry=ONCE)
        run = await system.run("w")
    assert run["status"] == "COMPLETED", run
    params = agent.calls[0].body["params"]
    assert isinstance(params, dict)
    assert params["bot_token"] == CANARY
    assert step_of(run, "only")["output"] is not None
    assert CANARY not in f"{run} {await wire_of(system, run)}"


class LeakingAgent(SimpleA2AAdapter):
    """A dialect of somebody else's, with a mistake that says all it knows."""

    def to_agent_request(self, task: AgentTask) -> JsonObject:
        raise RuntimeError(f"cannot write {task.input_data}")

    def get_protocol_name(self) -> str:
        return "clumsy"


async def test_a_dialect_that_breaks_does_not_bring_a_secret_into_the_log(
    system: RunningSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(system)
    monkeypatch.setattr(ProtocolAdapterFactory, "_adapters", {"clumsy": LeakingAgent})
    with capture_logs(processors=[structlog.processors.format_exc_info]) as logs:
        async with ScriptedAgent(simple_success({})) as agent:
            await system.register("A", agent.url, protocol="clumsy")
            await save(system, {"text": "hello", "t": SECRET}, retry=ONCE)
            run = await system.run("w")
    assert error_of(run)["code"] == "internal_error"
    crashed = str([line for line in logs if line["event"] == log_events.CALL_CRASHED])
    assert "cannot write" in crashed
    assert "to_agent_request" in crashed
    assert CANARY not in f"{logs} {run}"
