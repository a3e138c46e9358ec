"""The inbox on the command line."""

from __future__ import annotations

import json

import pytest
from tests.scenarios.cli.test_command_line import Trunkline, trunkline, workflow

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import ScriptedAgent, jsonrpc_task
from trunkline.testing.agents import Call, Hangup

pytestmark = pytest.mark.anyio

__all__ = ["trunkline"]

ASKING = jsonrpc_task("Which tone?", state="input-required")
CALL: JsonObject = {"id": "call-1", "name": "pay", "args": {"amount": 7}}


def calling_a_function(call: Call) -> Json:
    part: Json = {"kind": "data", "data": CALL, "metadata": {"adk_type": "function_call"}}
    message: Json = {"kind": "message", "role": "agent", "messageId": "m-1", "parts": [part]}
    status: Json = {"state": "input-required", "message": message}
    task: Json = {"kind": "task", "id": "remote-1", "contextId": "context-1", "status": status}
    return {"jsonrpc": "2.0", "id": call.id, "result": task}


async def waiting(trunkline: Trunkline, agent: ScriptedAgent, name: str, step: str = "") -> str:
    await trunkline("agents", "create", name, agent.url, "--protocol", "jsonrpc-2.0")
    file = workflow(name.lower(), f"letter: {{agent: {name}{step}}}")
    return str((await trunkline("run", file, "--follow", "--json")).json["id"])


async def test_a_question_is_listed_shown_and_answered(trunkline: Trunkline) -> None:
    async with ScriptedAgent(ASKING, jsonrpc_task("Dear Sir")) as agent:
        run_id = await waiting(trunkline, agent, "Listed")
        listed = await trunkline("inbox", "list", "--workflow", "listed")
        item = listed.out.splitlines()[1].split()[0]
        shown = await trunkline("inbox", "show", item)
        answered = await trunkline("inbox", "answer", item, "--text", "Formal")
        ended = await trunkline("runs", "watch", run_id)
        again = await trunkline("inbox", "answer", item, "--text", "Formal")
    assert "Which tone?" in listed.out
    assert f"answer: trunkline inbox answer {item} --text 'YOUR ANSWER'" in shown.out
    assert (answered.code, ended.code, again.code) == (0, 0, 3)
    assert agent.calls[1].message["parts"] == [{"kind": "text", "text": "Formal"}]


async def test_a_step_of_a_run_names_its_question_too(trunkline: Trunkline) -> None:
    async with ScriptedAgent(ASKING, jsonrpc_task("Dear Sir")) as agent:
        run_id = await waiting(trunkline, agent, "Named")
        silent = await trunkline("inbox", "answer", run_id, "letter")
        broken = await trunkline("inbox", "answer", run_id, "letter", "--data", '{"tone": "formal')
        answered = await trunkline("inbox", "answer", run_id, "letter", "--data", '{"tone": "formal"}')
        await trunkline("runs", "watch", run_id)
    assert (silent.code, broken.code, answered.code) == (2, 7, 0)
    assert "is not valid JSON" in broken.err
    assert agent.calls[1].message["parts"] == [{"kind": "data", "data": {"tone": "formal"}}]


async def test_what_a_function_returned_answers_the_agent_that_waits_for_it(trunkline: Trunkline) -> None:
    async with ScriptedAgent(calling_a_function, jsonrpc_task("Paid")) as agent:
        run_id = await waiting(trunkline, agent, "Payer")
        shown = await trunkline("inbox", "show", run_id, "letter", "--json")
        answered = await trunkline(
            "inbox", "answer", run_id, "letter", "--function-response", json.dumps({"paid": True})
        )
        await trunkline("runs", "watch", run_id)
    assert shown.json["data"] == CALL
    assert answered.code == 0
    assert agent.calls[1].message["parts"] == [
        {
            "kind": "data",
            "data": {"id": "call-1", "name": "pay", "response": {"paid": True}},
            "metadata": {"adk_type": "function_response"},
        }
    ]


async def test_an_unknown_outcome_is_resolved_from_the_inbox(trunkline: Trunkline) -> None:
    async with ScriptedAgent(Hangup()) as agent:
        run_id = await waiting(trunkline, agent, "Rude", ", delivery: at_most_once")
        listed = await trunkline("inbox", "list", "--kind", "outcome", "--json")
        without_outcome = await trunkline("inbox", "answer", run_id, "letter", "--text", "Done.")
        resolved = await trunkline(
            "inbox", "answer", run_id, "letter", "--outcome", "succeeded", "--output", "7"
        )
        shown = await trunkline("runs", "show", run_id, "--json")
    assert run_id in listed.out
    assert "--outcome succeeded|failed|call_again" in without_outcome.err
    assert (without_outcome.code, resolved.code, shown.json["status"]) == (2, 0, "COMPLETED")
