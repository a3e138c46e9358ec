"""The same content gives the same `text` and `data`, whatever the dialect and the form in which it was sent."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import AgentTask
from trunkline.protocols import AgentAnswer, ProtocolAdapterFactory, Succeeded

TASK = AgentTask(task_id="t")

# What an agent has computed, and what a workflow reads of it.
CONTENTS: dict[str, tuple[Json, JsonObject]] = {
    "the guide's object": (
        {"result": "Processed: q"},
        {"text": "Processed: q", "data": {"result": "Processed: q"}},
    ),
    "an object with more in it": ({"n": 1, "text": "a"}, {"text": "a", "data": {"n": 1, "text": "a"}}),
    "the order of the names": (
        {"response": "c", "result": "b", "text": "a"},
        {"text": "a", "data": {"response": "c", "result": "b", "text": "a"}},
    ),
    "a name that has no string": (
        {"result": {"a": 1}, "response": "b"},
        {"text": "b", "data": {"result": {"a": 1}, "response": "b"}},
    ),
    "an object without a text": ({"score": 3}, {"data": {"score": 3}}),
    "an empty object": ({}, {"data": {}}),
    "a list": ([1, "two"], {"data": [1, "two"]}),
    "a number": (42, {"text": "42", "data": 42}),
    "a truth": (True, {"text": "true", "data": True}),
    "a text": ("Sunny", {"text": "Sunny"}),
    "a text that is JSON": ('{"result": "x"}', {"text": "x", "data": {"result": "x"}}),
    "a text that only looks like JSON": ("[1] says so", {"text": "[1] says so"}),
}


def simple(content: Json) -> JsonObject:
    return {"task_id": "t", "status": "success", "output": content, "error": None}


def rpc_call(content: Json) -> JsonObject:
    return {"jsonrpc": "2.0", "id": "t", "result": content}


def as_text(content: Json) -> str:
    return content if isinstance(content, str) else json.dumps(content)


def task_with(part: JsonObject) -> JsonObject:
    return rpc_call({"status": {"state": "completed"}, "artifacts": [{"parts": [part]}]})


FORMS: dict[str, tuple[str, Callable[[Json], JsonObject]]] = {
    "Simple A2A": ("simple-a2a", simple),
    "a call": ("jsonrpc-call", rpc_call),
    "text, jsonrpc-2.0": (
        "jsonrpc-2.0",
        lambda content: task_with({"kind": "text", "text": as_text(content)}),
    ),
    "text, 0.1": (
        "a2a-0.1",
        lambda content: rpc_call(
            {
                "id": "t",
                "status": {"state": "completed"},
                "artifacts": [{"parts": [{"type": "text", "text": as_text(content)}]}],
            }
        ),
    ),
    "text in a message, 0.3": (
        "a2a-0.3",
        lambda content: rpc_call(
            {
                "kind": "message",
                "role": "agent",
                "messageId": "m",
                "parts": [{"kind": "text", "text": as_text(content)}],
            }
        ),
    ),
    "text, 1.0": (
        "a2a-1.0",
        lambda content: rpc_call(
            {
                "task": {
                    "id": "r",
                    "status": {"state": "TASK_STATE_COMPLETED"},
                    "artifacts": [{"artifactId": "a", "parts": [{"text": as_text(content)}]}],
                }
            }
        ),
    ),
    "data, jsonrpc-2.0": ("jsonrpc-2.0", lambda content: task_with({"kind": "data", "data": content})),
}


def output_of(form: str, content: Json, **config: Json) -> Json:
    protocol, body = FORMS[form]
    adapter = ProtocolAdapterFactory.create_adapter(protocol, config)
    outcome = adapter.decode(AgentAnswer(status=200, headers={}, body=encode(body(content))), TASK)
    assert isinstance(outcome, Succeeded), outcome
    return decode(outcome.output)


def applies(form: str, content: Json) -> bool:
    """Before A2A 1.0 a data part is an object."""
    return "data" not in form or isinstance(content, dict)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("content", CONTENTS)
def test_a_workflow_reads_the_same_text_and_data(form: str, content: str) -> None:
    value, expected = CONTENTS[content]
    if applies(form, value):
        output = output_of(form, value)
        assert isinstance(output, dict)
        assert {name: output[name] for name in ("text", "data") if name in output} == expected


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("content", CONTENTS)
def test_output_mode_data_gives_the_data_or_else_the_text(form: str, content: str) -> None:
    value, expected = CONTENTS[content]
    if applies(form, value):
        assert output_of(form, value, output_mode="data") == expected.get("data", expected.get("text"))


def test_the_text_as_it_was_sent_stays_in_the_artifacts_and_the_response() -> None:
    sent = '{"result": "x"}'
    output = output_of("text, jsonrpc-2.0", sent)
    assert isinstance(output, dict)
    assert output["artifacts"] == [{"parts": [{"kind": "text", "text": sent}]}]
    said = output_of("text in a message, 0.3", sent)
    assert isinstance(said, dict)
    assert said["response"] == sent


def test_words_next_to_data_are_the_text() -> None:
    adapter = ProtocolAdapterFactory.create_adapter("jsonrpc-2.0", None)
    body = rpc_call(
        {
            "status": {"state": "completed"},
            "artifacts": [
                {"parts": [{"kind": "text", "text": "See below"}, {"kind": "data", "data": {"result": "x"}}]}
            ],
        }
    )
    outcome = adapter.decode(AgentAnswer(status=200, headers={}, body=encode(body)), TASK)
    assert isinstance(outcome, Succeeded)
    output = decode(outcome.output)
    assert isinstance(output, dict)
    assert (output["text"], output["data"]) == ("See below", {"result": "x"})
