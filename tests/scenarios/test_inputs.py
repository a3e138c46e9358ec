"""Inputs of every shape, empty ones among them, as they reach an agent in each dialect."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing import RunningSystem, ScriptedAgent, jsonrpc_task, simple_success
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

INPUTS: list[tuple[str, Json, str]] = [
    ("object", {}, "{}"),
    ("string", "", ""),
    ("null", None, "null"),
    ("list", [], "[]"),
    ("zero", 0, "0"),
    ("false", False, "false"),
    ("fraction", 1.5, "1.5"),
    ("text", "hello", "hello"),
    ("items", [1, None, ""], '[1,null,""]'),
    ("object_of_empties", {"text": "", "query": None}, '{"text":"","query":null}'),
    ("unicode", "\u0000 \U0001f41d å", "\u0000 \U0001f41d å"),
    ("nested", {"a": {"b": [{}]}}, '{"a":{"b":[{}]}}'),
]


async def execute(system: RunningSystem, name: str, value: Json) -> JsonObject:
    """The body is the input itself, null too."""
    answer = await system.call("POST", f"/workflows/{name}/execute?wait=60", encode(value))
    assert answer.status == 200
    return answer.json


@pytest.mark.parametrize(("name", "value", "text"), INPUTS, ids=[name for name, _, _ in INPUTS])
async def test_an_input_reaches_agents_of_both_dialects_as_it_is(
    shared_system: RunningSystem, name: str, value: Json, text: str
) -> None:
    system = shared_system
    async with ScriptedAgent(simple_success(value)) as simple, ScriptedAgent(jsonrpc_task("ok")) as rpc:
        await system.register(f"Simple {name}", simple.url, protocol="simple-a2a")
        await system.register(f"Rpc {name}", rpc.url, protocol="jsonrpc-2.0")
        steps: JsonObject = {"simple": {"agent": f"Simple {name}"}, "rpc": {"agent": f"Rpc {name}"}}
        await system.save({"name": name, "steps": steps})
        run = await execute(system, name, value)
    assert run["status"] == "COMPLETED"
    assert run["input"] == value
    assert step_of(run, "rpc")["input"] == step_of(run, "simple")["input"] == value
    assert simple.calls[0].body["input"] == value
    assert rpc.calls[0].message["parts"] == [{"kind": "text", "text": text}]


@pytest.mark.parametrize("field", ["text", "query"])
async def test_a_field_that_becomes_the_text_loses_nothing_of_the_rest(
    shared_system: RunningSystem, field: str
) -> None:
    system = shared_system
    value: JsonObject = {field: "bees", "lang": "fr", "n": [1, 2]}
    async with ScriptedAgent(jsonrpc_task("ok")) as agent:
        await system.register(f"Field {field}", agent.url, protocol="jsonrpc-2.0")
        await system.save({"name": f"field-{field}", "steps": {"only": {"agent": f"Field {field}"}}})
        await execute(system, f"field-{field}", value)
    assert agent.calls[0].message["parts"] == [{"kind": "text", "text": "bees"}]
    assert agent.calls[0].message["metadata"] == value


@pytest.mark.parametrize(
    ("name", "output", "shown"),
    [
        ("out_null", None, None),
        ("out_empty_string", "", {"text": ""}),
        ("out_empty_object", {}, {"data": {}}),
        ("out_empty_list", [], {"data": []}),
        ("out_zero", 0, {"text": "0", "data": 0}),
        ("out_json_text", '{"a": 1}', {"data": {"a": 1}}),
    ],
)
async def test_an_empty_output_is_an_output(
    shared_system: RunningSystem, name: str, output: Json, shown: Json
) -> None:
    async with ScriptedAgent(simple_success(output)) as agent:
        await shared_system.register(name, agent.url, protocol="simple-a2a")
        await shared_system.save({"name": name, "steps": {"only": {"agent": name}}})
        run = await shared_system.run(name)
    assert run["status"] == "COMPLETED"
    assert step_of(run, "only")["output"] == shown
    assert run["output"] == shown


async def test_no_body_at_all_is_an_empty_input(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("ok")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
        answer = await system.call("POST", "/workflows/one/execute?wait=60")
    assert answer.json["input"] == {}
    assert agent.calls[0].body["input"] == {}


async def test_an_input_that_does_not_fit_the_schema_starts_nothing(system: RunningSystem) -> None:
    schema: JsonObject = {
        "type": "object",
        "required": ["topic"],
        "properties": {"topic": {"type": "string"}},
    }
    async with ScriptedAgent(simple_success("ok")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "strict", "input": schema, "steps": {"only": {"agent": "Agent"}}})
        refused = [
            await system.call("POST", "/workflows/strict/execute", body)
            for body in (b"{}", b"null", b'{"topic": 3}')
        ]
        run = await system.run("strict", {"topic": "bees"})
    assert [answer.status for answer in refused] == [422] * 3
    assert "topic" in str(refused[0].json["errors"])
    assert run["status"] == "COMPLETED"
    assert len(agent.calls) == 1
