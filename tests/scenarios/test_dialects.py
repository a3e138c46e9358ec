"""Agents that are registered without a protocol: what they speak is found out, kept, and found out again."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import fix_for
from trunkline.testing import Call, RunningSystem, ScriptedAgent, jsonrpc_task, simple_success
from trunkline.testing.agents import Reply, Script
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent", "retry": {"max_attempts": 1}}}}


async def register(system: RunningSystem, agent: ScriptedAgent, **fields: Json) -> None:
    await system.register("Agent", agent.url, **fields)
    await system.save(ONE)


async def dialect(system: RunningSystem) -> JsonObject:
    shown = (await system.call("GET", "/agents/Agent")).json["dialect"]
    assert isinstance(shown, dict)
    return shown


def card(agent: ScriptedAgent, url: str | None = None) -> JsonObject:
    return {
        "name": "Agent",
        "protocolVersion": "0.3.0",
        "url": url or agent.url,
        "preferredTransport": "JSONRPC",
    }


def speaks_jsonrpc(call: Call) -> Json:
    """Accepts JSON-RPC only; anything else is an invalid request."""
    if call.body.get("jsonrpc") != "2.0":
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Invalid Request"}}
    return jsonrpc_task("in JSON-RPC")(call)


def strictly(script: Script, status: int) -> Script:
    """The same, but with an HTTP status for what it does not understand."""

    def answer(call: Call) -> Json | Reply:
        said = script(call) if callable(script) else script
        refused = isinstance(said, dict) and bool(said.get("error"))
        return Reply(status, encode(said)) if refused else said  # pyright: ignore[reportReturnType] - no coroutine here

    return answer


def speaks_simple(call: Call) -> Json:
    if "task_id" not in call.body:
        return {"task_id": None, "status": "error", "output": None, "error": "task_id is missing"}
    return simple_success("in Simple A2A")(call)


async def test_a_card_tells_dialect_and_address(system: RunningSystem) -> None:
    async with ScriptedAgent(speaks_jsonrpc) as agent:
        agent.publish(card(agent, agent.url.replace("/agent", "/a2a/v1")))
        await register(system, agent)
        assert (await system.call("GET", "/agents/Agent")).json["dialect"] is None
        run = await system.run("one")
        shown = await dialect(system)
    assert run["status"] == "COMPLETED"
    assert step_of(run, "only")["protocol"] == "a2a-0.3"
    assert agent.calls[0].path == "/a2a/v1"
    assert shown["protocol"] == "a2a-0.3"
    assert shown["url"] == agent.url.replace("/agent", "/a2a/v1")
    assert "/.well-known/agent-card.json offers A2A 0.3.0 over JSON-RPC" in str(shown["evidence"])
    assert shown["decided_at"]


async def test_without_a_card_an_agent_speaks_simple_a2a(system: RunningSystem) -> None:
    async with ScriptedAgent(speaks_simple) as agent:
        await register(system, agent)
        run = await system.run("one")
        shown = await dialect(system)
    assert run["status"] == "COMPLETED"
    assert shown["protocol"] == "simple-a2a"
    assert str(shown["evidence"]).startswith("The agent has no card (405 at ")
    assert len(agent.calls) == 1


async def test_many_first_calls_ask_for_the_card_once(system: RunningSystem) -> None:
    async with ScriptedAgent(speaks_jsonrpc) as agent:
        agent.publish(card(agent))
        await register(system, agent)
        runs = await asyncio.gather(*(system.run("one") for _ in range(20)))
        await system.run("one")
    assert {str(run["status"]) for run in runs} == {"COMPLETED"}
    assert len(agent.card_requests) == 1


@pytest.mark.parametrize(
    "refusing",
    [
        pytest.param(speaks_jsonrpc, id="-32600 with HTTP 200"),
        pytest.param(strictly(speaks_jsonrpc, 400), id="-32600 with HTTP 400"),
        pytest.param(strictly(speaks_jsonrpc, 404), id="HTTP 404"),
    ],
)
@pytest.mark.parametrize("with_card", [True, False], ids=["with a card", "without a card"])
async def test_an_agent_that_moves_to_jsonrpc_between_two_runs_is_followed(
    system: RunningSystem, refusing: Script, *, with_card: bool
) -> None:
    async with ScriptedAgent(speaks_simple) as agent:
        await register(system, agent)
        before = await system.run("one", {"text": "a"})
        agent.script(refusing)
        agent.publish(card(agent) if with_card else None)
        moving = await system.run("one", {"text": "b"})
        after = await system.run("one", {"text": "c"})
        shown = await dialect(system)
    protocols = [step_of(run, "only")["protocol"] for run in (before, moving, after)]
    assert [run["status"] for run in (before, moving, after)] == ["COMPLETED"] * 3
    spoken = "a2a-0.3" if with_card else "jsonrpc-2.0"
    assert protocols == ["simple-a2a", spoken, spoken]
    assert step_of(moving, "only")["attempts"] == 1
    # Once refused, and never tried again.
    assert ["jsonrpc" in call.body for call in agent.calls] == [False, False, True, True]
    assert agent.calls[1].id == agent.calls[2].id
    assert ("offers A2A" if with_card else "refused simple-a2a") in str(shown["evidence"])


async def test_an_agent_that_moves_back_to_simple_a2a_is_followed_too(system: RunningSystem) -> None:
    async with ScriptedAgent(speaks_jsonrpc) as agent:
        agent.publish(card(agent))
        await register(system, agent)
        await system.run("one")
        agent.script(strictly(speaks_simple, 400))
        agent.publish(None)
        runs = [await system.run("one") for _ in range(2)]
        shown = await dialect(system)
    assert [run["status"] for run in runs] == ["COMPLETED"] * 2
    assert [step_of(run, "only")["protocol"] for run in runs] == ["simple-a2a"] * 2
    assert ["jsonrpc" in call.body for call in agent.calls] == [True, True, False, False]
    assert shown["protocol"] == "simple-a2a"


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(simple_success("nothing"), id="answers in its own way"),
        pytest.param(Reply(500, b"<h1>KeyError: task_id</h1>", {"Content-Type": "text/html"}), id="crashes"),
    ],
)
async def test_an_answer_that_proves_nothing_is_no_reason_to_send_again_but_to_look_again(
    system: RunningSystem, broken: Script
) -> None:
    async with ScriptedAgent(speaks_jsonrpc) as agent:
        agent.publish(card(agent))
        await register(system, agent)
        await system.run("one")
        agent.publish(None)
        agent.script(broken, speaks_simple)
        failed = await system.run("one")
        calls = len(agent.calls)
        run = await system.run("one")
    assert failed["status"] == "FAILED"
    assert calls == 2
    assert run["status"] == "COMPLETED"
    assert step_of(run, "only")["protocol"] == "simple-a2a"


async def test_an_agent_that_refuses_everything_is_not_taken_for_another(system: RunningSystem) -> None:
    async with ScriptedAgent(Reply(404, b"nobody here")) as agent:
        await register(system, agent)
        runs = [await system.run("one") for _ in range(2)]
        shown = await dialect(system)
    for run in runs:
        assert error_of(run)["message"] == "The agent answered HTTP 404: nobody here"
        assert step_of(run, "only")["protocol"] == "simple-a2a"
    assert shown["protocol"] == "simple-a2a"


async def test_a_card_that_cannot_be_read_now_decides_nothing(system: RunningSystem) -> None:
    async with ScriptedAgent(speaks_jsonrpc) as agent:
        agent.publish(Reply(503, b"starting"))
        await register(system, agent)
        failed = await system.run("one")
        undecided = (await system.call("GET", "/agents/Agent")).json["dialect"]
        agent.publish(card(agent))
        run = await system.run("one")
    assert error_of(failed)["code"] == "agent_protocol_unclear"
    assert "HTTP 503 at /" in str(error_of(failed)["message"])
    assert undecided is None
    assert run["status"] == "COMPLETED"
    assert len(agent.calls) == 1


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("http://169.254.169.254/agent", "agent_address_forbidden", "is a cloud metadata address"),
        ("http://127.0.0.1:1/agent", "agent_unreachable", "cannot be reached"),
    ],
)
async def test_an_agent_whose_card_cannot_even_be_asked_for_fails_for_that_reason(
    system: RunningSystem, url: str, code: str, said: str
) -> None:
    await system.register("Agent", url)
    await system.save(ONE)
    error = error_of(await system.run("one"))
    refreshed = await system.call("POST", "/agents/Agent/refresh")
    assert error["code"] == code
    assert said in str(error["message"])
    assert error["fix"] == fix_for(code)
    assert refreshed.status == 502
    assert refreshed.json["fix"] == fix_for(code)


async def test_an_agent_that_is_down_while_its_dialect_is_known_keeps_it(system: RunningSystem) -> None:
    async with ScriptedAgent(speaks_jsonrpc) as agent:
        agent.publish(card(agent))
        await register(system, agent)
        await system.run("one")
        agent.publish(Reply(503))
        agent.script(Reply(500, b"oops"), Reply(500, b"oops"), speaks_jsonrpc)
        failed = [await system.run("one") for _ in range(2)]
        run = await system.run("one")
    assert [error_of(run)["message"] for run in failed] == ["The agent answered HTTP 500: oops"] * 2
    assert run["status"] == "COMPLETED"


async def test_a_card_cannot_send_the_credentials_to_another_origin(system: RunningSystem) -> None:
    async with ScriptedAgent(speaks_jsonrpc) as agent, ScriptedAgent(speaks_jsonrpc) as elsewhere:
        agent.publish(card(agent, elsewhere.url))
        await register(system, agent, auth_type="bearer", auth_config={"token": "canary-4711"})
        run = await system.run("one")
    assert not elsewhere.calls
    assert error_of(run)["code"] == "agent_protocol_unclear"
    assert elsewhere.url in str(error_of(run)["message"])
    assert "not of the same origin" in str(error_of(run)["message"])
    assert f"allow_card_origin to {elsewhere.url.removesuffix('/agent')}" in str(error_of(run)["fix"])
    assert "endpoint_override" in str(error_of(run)["fix"])
    assert not agent.calls


async def test_a_card_with_only_unsupported_versions_is_an_error_that_names_them(
    system: RunningSystem,
) -> None:
    async with ScriptedAgent(speaks_jsonrpc) as agent:
        interface: JsonObject = {"url": agent.url, "protocolBinding": "GRPC", "protocolVersion": "1.0"}
        agent.publish({"name": "Agent", "supportedInterfaces": [interface]})
        await register(system, agent)
        run = await system.run("one")
    assert error_of(run)["code"] == "agent_protocol_unclear"
    assert "GRPC 1.0" in str(error_of(run)["message"])


async def test_a_pinned_dialect_is_never_left(system: RunningSystem) -> None:
    async with ScriptedAgent(speaks_jsonrpc) as agent:
        agent.publish(card(agent))
        await register(system, agent, protocol="simple-a2a")
        run = await system.run("one")
    assert run["status"] == "FAILED"
    assert error_of(run)["code"] == "agent_answer_malformed"
    assert "Response missing 'status' field" in str(error_of(run)["message"])
    assert "jsonrpc-2.0" in str(error_of(run)["fix"])
    assert not agent.card_requests
    assert len(agent.calls) == 1
