"""Trunkline and agents of every framework, each registered by its URL alone."""

from __future__ import annotations

import asyncio
import secrets

import pytest
from tests.interop.agents import Agent
from tests.interop.workflows import (
    begin,
    message,
    name_of,
    one,
    output_of,
    parts_of,
    quick_client,
    run_workflow,
    two_turns,
)

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

FILE = b"\x00\x01binary\xff"
FILE_BASE64 = "AAFiaW5hcnn/"


async def test_the_card_tells_the_dialect_and_a_text_comes_back(system: RunningSystem, agent: Agent) -> None:
    run = await run_workflow(system, agent, "good morning")
    assert output_of(run)["text"] == "Heard: good morning"
    assert step_of(run, "only")["protocol"] == agent.kind.dialect
    dialect = (await system.call("GET", f"/agents/{agent.name}")).json["dialect"]
    assert isinstance(dialect, dict)
    assert "card" in str(dialect["evidence"])


async def test_data_comes_back(system: RunningSystem, agent: Agent) -> None:
    data: JsonObject = {"city": "Rome", "days": [1, 2.5, None, True], "nested": {"ok": True}}
    output = output_of(await run_workflow(system, agent, "take", {"data": data}))
    assert [part["data"] for part in parts_of(output) if isinstance(part, dict) and "data" in part] == [data]


async def test_a_file_comes_back_byte_by_byte(system: RunningSystem, agent: Agent) -> None:
    file: JsonObject = {"raw": FILE_BASE64, "mediaType": "application/octet-stream", "filename": "a.bin"}
    output = output_of(await run_workflow(system, agent, "take", file))
    assert FILE_BASE64 in [content for part in parts_of(output) for content in _contents(part)]


def _contents(part: Json) -> list[Json]:
    """The bytes of a part, however its dialect spells them."""
    assert isinstance(part, dict)
    file = part.get("file")
    return [part.get("raw"), file.get("bytes") if isinstance(file, dict) else None]


async def test_a_message_without_a_task_is_an_answer_too(system: RunningSystem, agent: Agent) -> None:
    output = output_of(await run_workflow(system, agent, "say just this"))
    assert "just this" in str(output.get("text", output.get("response")))


async def test_a_long_task_is_followed_to_its_end_and_sent_once(system: RunningSystem, agent: Agent) -> None:
    name = secrets.token_hex(4)
    run_id = await begin(system, agent, f"work {name}")
    assert (await system.get(run_id))["status"] == "RUNNING"
    agent.release(name)
    assert output_of(await system.wait_for(run_id))["text"] == f"Done: {name}"
    assert len(agent.executions(f"work {name}")) == 1


async def test_partial_output_is_there_before_the_end(system: RunningSystem, agent: Agent) -> None:
    name = secrets.token_hex(4)
    run_id = await begin(system, agent, f"stream {name}")
    while "Once upon" not in str(news := await _news(system, run_id)):
        await asyncio.sleep(0.02)
    assert "a time" not in str(news)
    agent.release(name)
    assert output_of(await system.wait_for(run_id))["text"] == "Once upon a time"


async def _news(system: RunningSystem, run_id: str) -> list[Json]:
    events = await system.items(f"/runs/{run_id}/events")
    return [event["data"] for event in events if event["type"] == "StepProgress"]


async def test_a_failed_task_fails_the_step(system: RunningSystem, agent: Agent) -> None:
    run = await run_workflow(system, agent, "fail no ink left")
    assert run["status"] == "FAILED"
    # A failure has no words of its own in fasta2a: they stand in the history only, which its streams leave out.
    reason = "" if agent.name == "fasta2a" else ": no ink left"
    assert error_of(run)["message"] == f"Task state: failed{reason}"


# How a framework tells that the agent itself has raised; those that are not here end the task as failed.
CRASHES = {
    # The stream breaks off, and the task stands as `submitted` forever.
    "a2a-sdk-0.3": "agent_task_unfinished",
    "a2a-sdk-1": "agent_jsonrpc_error",
    "a2a-sdk-1-with-0.3": "agent_jsonrpc_error",
    "a2a-sdk-1-http": "agent_http_error",
}


async def test_an_agent_that_crashes_fails_the_step(system: RunningSystem, agent: Agent) -> None:
    run = await system.run(name_of(quick_client, agent), message("crash no ink left"))
    assert run["status"] == "FAILED"
    assert error_of(run)["code"] == CRASHES.get(agent.name, "agent_task_failed")


async def test_a_task_that_is_cancelled_ends_at_the_agent_too(system: RunningSystem, agent: Agent) -> None:
    name = secrets.token_hex(4)
    run_id = await begin(system, agent, f"work {name}")
    await system.call("POST", f"/runs/{run_id}/cancel")
    run = await system.wait_for(run_id)
    assert run["status"] == "CANCELLED"
    assert "cancel" in [call.operation for call in agent.calls()]


async def test_the_second_turn_knows_the_first(system: RunningSystem, agent: Agent) -> None:
    run = await system.run(name_of(two_turns, agent))
    assert output_of(run, "first")["text"] == "Kept: tea"
    assert output_of(run, "second")["text"] == "You said: tea"


async def test_a_question_is_answered_and_the_work_goes_on(system: RunningSystem, agent: Agent) -> None:
    run_id = await system.start(name_of(one, agent), message("ask which city?"))
    waiting = await system.wait_for(run_id, {"WAITING", "FAILED", "COMPLETED"})
    waiting_for = step_of(waiting, "only")["waiting_for"]
    assert isinstance(waiting_for, dict), waiting
    assert waiting_for["kind"] == "input"
    assert waiting_for["text"] == "which city?"
    await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "Rome"})
    assert output_of(await system.wait_for(run_id))["text"] == "Heard: Rome"
