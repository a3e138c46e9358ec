"""Agents that stream: what they say meanwhile, and what becomes of a stream that does not reach its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, jsonrpc_error, jsonrpc_task, running_system
from trunkline.testing.agents import Call, Hangup, Reply, Scripted, Stream
from trunkline.testing.system import objects_in, step_of

pytestmark = pytest.mark.anyio

CARD: JsonObject = {
    "name": "Streamer",
    "protocolVersion": "0.3.0",
    "preferredTransport": "JSONRPC",
    "capabilities": {"streaming": True},
    "skills": [],
}

Tell: TypeAlias = "Callable[[Call], Scripted | Awaitable[Scripted]]"


def event(call: Call, result: JsonObject) -> Json:
    return {"jsonrpc": "2.0", "id": call.id, "result": result}


def status(call: Call, state: str, text: str = "", *, final: bool = False) -> Json:
    said: JsonObject = {"state": state}
    if text:
        parts: Json = [{"kind": "text", "text": text}]
        said["message"] = {"kind": "message", "role": "agent", "messageId": "m", "parts": parts}
    return event(
        call,
        {"kind": "status-update", "taskId": "remote-1", "contextId": "c-1", "status": said, "final": final},
    )


def piece(call: Call, text: str, *, append: bool = False) -> Json:
    artifact: Json = {"artifactId": "answer", "name": "Answer", "parts": [{"kind": "text", "text": text}]}
    return event(
        call,
        {
            "kind": "artifact-update",
            "taskId": "remote-1",
            "contextId": "c-1",
            "artifact": artifact,
            "append": append,
        },
    )


def by_method(**answers: Tell) -> Tell:
    """One answer for each JSON-RPC method, named by the part after the slash."""
    return lambda call: answers[str(call.method).partition("/")[2]](call)


async def start_one(system: RunningSystem, agent: ScriptedAgent, **fields: Json) -> str:
    agent.publish({**CARD, "url": agent.url})
    await system.register("Streamer", agent.url, **fields)
    await system.save({"name": "one", "steps": {"only": {"agent": "Streamer", "retry": {"max_attempts": 1}}}})
    return await system.start("one", {"query": "weather"})


def methods(agent: ScriptedAgent) -> list[Json]:
    return [call.method for call in agent.calls]


async def news_of(system: RunningSystem, run_id: str) -> list[JsonObject]:
    events = await system.items(f"/runs/{run_id}/events")
    found = [event["data"] for event in events if event["type"] == "StepProgress"]
    return [said for data in found if isinstance(data, dict) for said in objects_in(data["news"])]


async def test_what_a_streaming_agent_says_is_in_the_history_before_it_is_done(system: RunningSystem) -> None:
    may_end = asyncio.Event()

    def answer(call: Call) -> Scripted:
        return Stream(
            status(call, "working", "Looking it up"),
            piece(call, "It is "),
            piece(call, "sunny.", append=True),
            may_end,
            status(call, "completed", final=True),
        )

    async with ScriptedAgent(answer) as agent:
        run_id = await start_one(system, agent)
        news = await news_of(system, run_id)
        while "sunny." not in str(news):
            await asyncio.sleep(0.02)
            news = await news_of(system, run_id)
        before = await system.get(run_id)
        may_end.set()
        run = await system.wait_for(run_id)
    assert before["status"] == "RUNNING"
    assert news[0] == {"kind": "status", "text": "Looking it up"}
    assert "".join(str(said["text"]) for said in news[1:]) == "It is sunny."
    assert run["status"] == "COMPLETED"
    output = step_of(run, "only")["output"]
    assert isinstance(output, dict)
    assert output["text"] == "It is sunny."
    assert methods(agent) == ["message/stream"]


@pytest.mark.parametrize("append", [True, False], ids=["goes on", "starts again"])
async def test_a_stream_that_is_cut_is_taken_up_again_and_then_the_task_is_read(
    system: RunningSystem, *, append: bool
) -> None:
    def stream(call: Call) -> Scripted:
        return Stream(status(call, "working"), piece(call, "It is "), Hangup())

    def resubscribe(call: Call) -> Scripted:
        return Stream(piece(call, "sunny.", append=append), status(call, "completed", final=True))

    answer = by_method(stream=stream, resubscribe=resubscribe, get=jsonrpc_task("It is sunny."))
    async with ScriptedAgent(answer) as agent:
        run = await system.wait_for(await start_one(system, agent))
    assert methods(agent) == ["message/stream", "tasks/resubscribe", "tasks/get"]
    output = step_of(run, "only")["output"]
    assert isinstance(output, dict)
    assert output["text"] == "It is sunny."


async def test_a_stream_that_is_cut_before_the_agent_has_the_task_is_no_answer(system: RunningSystem) -> None:
    async with ScriptedAgent(lambda _: Stream(Hangup())) as agent:
        run = await system.wait_for(await start_one(system, agent))
    error = step_of(run, "only")["error"]
    assert isinstance(error, dict)
    assert (run["status"], error["code"]) == ("FAILED", "agent_connection_lost")
    assert methods(agent) == ["message/stream"]


async def test_an_agent_that_answers_a_stream_with_one_whole_answer_is_understood(
    system: RunningSystem,
) -> None:
    async with ScriptedAgent(jsonrpc_task("Sunny")) as agent:
        run = await system.wait_for(await start_one(system, agent))
    assert run["status"] == "COMPLETED"
    assert methods(agent) == ["message/stream"]


async def test_a_stream_that_ends_without_the_answer_is_followed_by_a_look_at_the_task(
    system: RunningSystem,
) -> None:
    answer = by_method(
        stream=lambda call: Stream(status(call, "working"), status(call, "completed", final=True)),
        get=jsonrpc_task("Sunny"),
    )
    async with ScriptedAgent(answer) as agent:
        run = await system.wait_for(await start_one(system, agent))
    assert methods(agent) == ["message/stream", "tasks/get"]
    assert run["status"] == "COMPLETED"


async def test_an_event_that_makes_no_sense_is_followed_by_a_look_at_the_task(system: RunningSystem) -> None:
    answer = by_method(
        stream=lambda call: Stream(
            status(call, "working"), {"jsonrpc": "2.0", "id": "another", "result": {}}
        ),
        get=jsonrpc_task("Sunny"),
    )
    async with ScriptedAgent(answer) as agent:
        run = await system.wait_for(await start_one(system, agent))
    assert methods(agent) == ["message/stream", "tasks/get"]
    assert run["status"] == "COMPLETED"


async def test_a_run_that_is_cancelled_tells_the_agent_whose_stream_it_listens_to(
    system: RunningSystem,
) -> None:
    answer = by_method(
        stream=lambda call: Stream(status(call, "working"), asyncio.Event()),
        cancel=jsonrpc_task("", state="canceled"),
    )
    async with ScriptedAgent(answer) as agent:
        run_id = await start_one(system, agent)
        await system.wait_for_step(run_id, "only", {"RUNNING"})
        while step_of(await system.get(run_id), "only")["waiting_for"] is None:
            await asyncio.sleep(0.02)
        await system.call("POST", f"/runs/{run_id}/cancel")
        told = await agent.called_for("tasks/cancel")
        run = await system.wait_for(run_id)
    assert told.body["params"] == {"id": "remote-1"}
    assert run["status"] == "CANCELLED"


async def test_a_line_that_is_held_long_enough_is_let_go_and_the_agent_is_asked(tmp_path: Path) -> None:
    answer = by_method(
        stream=lambda call: Stream(status(call, "working"), asyncio.Event()), get=jsonrpc_task("Sunny")
    )
    async with (
        ScriptedAgent(answer) as agent,
        running_system(tmp_path / "data", line_timeout="300ms") as system,
    ):
        run = await system.wait_for(await start_one(system, agent))
        await agent.caller_left()
    assert methods(agent) == ["message/stream", "tasks/get"]
    assert run["status"] == "COMPLETED"


async def test_a_stream_is_let_go_at_a_stop_and_the_agent_is_asked_by_the_next_process(
    tmp_path: Path,
) -> None:
    answer = by_method(
        stream=lambda call: Stream(status(call, "working"), asyncio.Event()), get=jsonrpc_task("Sunny")
    )
    async with ScriptedAgent(answer) as agent:
        async with running_system(tmp_path / "data") as system:
            run_id = await start_one(system, agent)
            while step_of(await system.get(run_id), "only")["waiting_for"] is None:
                await asyncio.sleep(0.02)
        async with running_system(tmp_path / "data") as system:
            run = await system.wait_for(run_id)
    assert methods(agent) == ["message/stream", "tasks/get"]
    assert run["status"] == "COMPLETED"


async def test_an_agent_that_refuses_the_stream_fails_with_its_own_words(system: RunningSystem) -> None:
    refusal = Reply(
        400, b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32602, "message": "No such skill"}}'
    )
    async with ScriptedAgent(refusal) as agent:
        run = await system.wait_for(await start_one(system, agent))
    error = step_of(run, "only")["error"]
    assert isinstance(error, dict)
    assert error["message"] == "JSON-RPC Error -32602: No such skill"


async def test_what_an_agent_says_when_it_is_asked_is_news_once(system: RunningSystem) -> None:
    states = iter(["Reading", "Reading", "Reading", "Writing"])

    def get(call: Call) -> Json:
        text = next(states, None)
        return jsonrpc_task("done")(call) if text is None else jsonrpc_task(text, state="working")(call)

    answer = by_method(send=jsonrpc_task("", state="working"), get=get)
    async with ScriptedAgent(answer) as agent:
        await system.register("Asked", agent.url, protocol="jsonrpc-2.0")
        await system.save({"name": "one", "steps": {"only": {"agent": "Asked"}}})
        run_id = await system.start("one", {"query": "weather"})
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert [said["text"] for said in await news_of(system, run_id)] == ["Reading", "Writing"]


def no_such_path(_: Call) -> Scripted:
    return Reply(404, b"no such path")


@pytest.mark.parametrize(
    "refusal",
    [
        jsonrpc_error(-32004, "Streaming is not supported"),
        jsonrpc_error(-32601, "Method not found"),
        no_such_path,
    ],
)
async def test_an_agent_that_has_no_streams_after_all_gets_the_message_without_one(
    system: RunningSystem, refusal: Tell
) -> None:
    answer = by_method(stream=refusal, send=jsonrpc_task("Sunny"))
    async with ScriptedAgent(answer) as agent:
        run = await system.wait_for(await start_one(system, agent))
    assert methods(agent) == ["message/stream", "message/send"]
    assert run["status"] == "COMPLETED"
    assert agent.calls[0].message["messageId"] == agent.calls[1].message["messageId"]


async def test_a_stream_that_lost_its_listener_is_taken_up_by_the_next_process(tmp_path: Path) -> None:
    may_end = asyncio.Event()

    def resubscribe(call: Call) -> Scripted:
        return Stream(piece(call, "It is sunny."), may_end, status(call, "completed", final=True))

    def get(call: Call) -> Json:
        return (jsonrpc_task("It is sunny.") if may_end.is_set() else jsonrpc_task("", state="working"))(call)

    answer = by_method(
        stream=lambda call: Stream(status(call, "working"), asyncio.Event()), resubscribe=resubscribe, get=get
    )
    async with ScriptedAgent(answer) as agent:
        async with running_system(tmp_path / "data") as system:
            run_id = await start_one(system, agent)
            while step_of(await system.get(run_id), "only")["waiting_for"] is None:
                await asyncio.sleep(0.02)
        async with running_system(tmp_path / "data") as system:
            while "It is sunny." not in str(await news_of(system, run_id)):
                await asyncio.sleep(0.02)
            may_end.set()
            run = await system.wait_for(run_id)
    assert methods(agent) == ["message/stream", "tasks/get", "tasks/resubscribe", "tasks/get"]
    assert run["status"] == "COMPLETED"


async def test_the_answer_of_another_task_is_not_taken_for_ours(system: RunningSystem) -> None:
    answer = by_method(
        send=jsonrpc_task("", state="working"), get=jsonrpc_task("Somebody else's", remote_id="remote-2")
    )
    async with ScriptedAgent(answer) as agent:
        await system.register("Confused", agent.url, protocol="jsonrpc-2.0")
        await system.save(
            {"name": "one", "steps": {"only": {"agent": "Confused", "retry": {"max_attempts": 1}}}}
        )
        run = await system.run("one", {"query": "weather"})
    error = step_of(run, "only")["error"]
    assert isinstance(error, dict)
    assert (run["status"], error["code"]) == ("FAILED", "agent_response_id_mismatch")
    assert "asked for the task remote-1, got remote-2" in str(error["message"])
