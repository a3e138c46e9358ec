"""Agents that want OAuth2 tokens: fetched once, renewed after a refusal, and no call is lost for it."""

from __future__ import annotations

import asyncio

import pytest
from tests.token_endpoint import TokenEndpoint, token_endpoint

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import Call, RunningSystem, ScriptedAgent, simple_success
from trunkline.testing.agents import Reply, Stream
from trunkline.testing.system import error_of

pytestmark = pytest.mark.anyio


async def prepare(
    system: RunningSystem, name: str, agent: ScriptedAgent, endpoint: TokenEndpoint, **fields: Json
) -> str:
    """Registers the agent; the name of a workflow that calls it once."""
    client: JsonObject = {"token_url": endpoint.url, "client_id": "me", "client_secret": "the secret"}
    await system.register(name, agent.url, auth_type="oauth2", auth_config=client, **fields)
    step: JsonObject = {"agent": name, "retry": {"max_attempts": 1}}
    await system.save({"name": name.lower(), "steps": {"only": step}})
    return name.lower()


def streamed(call: Call) -> Json | Stream:
    if call.method == "tasks/get":
        return {
            "jsonrpc": "2.0",
            "id": call.id,
            "result": {"kind": "task", "id": "t", "status": {"state": "completed"}},
        }
    status: JsonObject = {"kind": "status-update", "taskId": "t", "contextId": "c", "final": True}
    answer: Json = {"jsonrpc": "2.0", "id": call.id, "result": {**status, "status": {"state": "completed"}}}
    return Stream(answer)


async def test_many_runs_at_once_need_one_token(system: RunningSystem) -> None:
    async with token_endpoint() as endpoint, ScriptedAgent(simple_success("ok")) as agent:
        workflow = await prepare(system, "Many", agent, endpoint, protocol="simple-a2a")
        runs = await asyncio.gather(*(system.run(workflow) for _ in range(30)))
    assert [run["status"] for run in runs] == ["COMPLETED"] * 30
    assert {call.headers["Authorization"] for call in agent.calls} == {"Bearer token-1"}
    assert len(endpoint.requests) == 1


async def test_a_refused_token_is_renewed_and_the_call_sent_again_in_the_same_attempt(
    system: RunningSystem,
) -> None:
    async with token_endpoint() as endpoint, ScriptedAgent(Reply(401), simple_success("ok")) as agent:
        workflow = await prepare(system, "Renewed", agent, endpoint, protocol="simple-a2a")
        run = await system.run(workflow)
    assert run["status"] == "COMPLETED"
    tokens = [call.headers["Authorization"] for call in agent.calls]
    assert tokens == ["Bearer token-1", "Bearer token-2"]
    # Nobody took the first one, so the second is the same message.
    assert agent.calls[0].id == agent.calls[1].id


async def test_a_stream_is_asked_for_again_with_another_token(system: RunningSystem) -> None:
    async with token_endpoint() as endpoint, ScriptedAgent(Reply(401), streamed) as agent:
        agent.publish(
            {"name": "S", "protocolVersion": "0.3.0", "url": agent.url, "capabilities": {"streaming": True}}
        )
        workflow = await prepare(system, "Streamed", agent, endpoint)
        run = await system.run(workflow)
    assert run["status"] == "COMPLETED", run
    assert [(call.method, call.headers["Authorization"]) for call in agent.calls[:2]] == [
        ("message/stream", "Bearer token-1"),
        ("message/stream", "Bearer token-2"),
    ]


async def test_an_agent_that_refuses_every_token_is_asked_twice(system: RunningSystem) -> None:
    async with token_endpoint() as endpoint, ScriptedAgent(Reply(401)) as agent:
        workflow = await prepare(system, "Refusing", agent, endpoint, protocol="simple-a2a")
        run = await system.run(workflow)
    error = error_of(run)
    assert (error["code"], error["http_status"]) == ("agent_http_error", 401)
    assert len(agent.calls) == 2
    assert len(endpoint.requests) == 2


async def test_without_a_token_nothing_is_sent_to_the_agent(system: RunningSystem) -> None:
    async with token_endpoint() as endpoint, ScriptedAgent(simple_success("ok")) as agent:
        endpoint.scripted = [(503, b"")]
        workflow = await prepare(system, "Waiting", agent, endpoint, protocol="simple-a2a")
        assert error_of(await system.run(workflow))["code"] == "agent_token_unavailable"
        assert agent.calls == []
        assert (await system.run(workflow))["status"] == "COMPLETED"
