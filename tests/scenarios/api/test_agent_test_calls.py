"""Agents that are tried out with one message, and what they say of themselves when they are asked."""

from __future__ import annotations

import asyncio
import re

import pytest
from structlog.testing import capture_logs
from tests.resources import read_resource

from trunkline.api.resources.agents.registry import AgentCardView
from trunkline.api.resources.agents.test_calls import TestCallResult
from trunkline.jsontypes import Json, JsonObject
from trunkline.telemetry import log_events
from trunkline.testing import RunningSystem, ScriptedAgent, jsonrpc_task, simple_error, simple_success
from trunkline.testing.agents import Call

pytestmark = pytest.mark.anyio

SECRET = "s3cret-of-the-agent"


async def try_out(system: RunningSystem, name: str, body: Json) -> TestCallResult:
    answer = await system.call("POST", f"/agents/{name}/try", body)
    assert answer.status == 200, answer.body
    return read_resource(TestCallResult, answer.body)


async def look(system: RunningSystem, name: str) -> AgentCardView:
    answer = await system.call("GET", f"/agents/{name}/card")
    assert answer.status == 200, answer.body
    return read_resource(AgentCardView, answer.body)


def card_at(url: str) -> JsonObject:
    return {
        "name": "Cardholder",
        "url": url,
        "protocolVersion": "0.3.0",
        "capabilities": {"streaming": False},
        "skills": [{"id": "s", "name": "Says things", "description": f"Never says {SECRET}"}],
    }


async def test_a_message_goes_to_the_agent_once_and_its_answer_comes_back_with_the_wire(
    shared_system: RunningSystem,
) -> None:
    system = shared_system
    async with ScriptedAgent(simple_success({"text": "hi"})) as agent:
        await system.register("Tried", agent.url, protocol="simple-a2a")
        with capture_logs() as logs:
            trial = await try_out(system, "Tried", {"text": "hello"})
    (call,) = agent.calls
    assert call.body["input"] == {"text": "hello"}
    assert (trial["outcome"], trial["protocol"]) == ("success", "simple-a2a")
    assert isinstance(trial["output"], dict)
    assert trial["output"]["text"] == "hi"
    (exchange,) = trial["exchanges"]
    assert (exchange.get("kind"), exchange["request"]["method"]) == ("send", "POST")
    assert '"hello"' in exchange["request"]["body"]
    assert [line["outcome"] for line in logs if line["event"] == log_events.AGENT_TRIED] == ["success"]


async def test_a_trial_is_no_run_and_counts_for_nothing(shared_system: RunningSystem) -> None:
    system = shared_system
    async with ScriptedAgent(simple_error("No.")) as agent:
        await system.register("Uncounted", agent.url, protocol="simple-a2a", breaker={"failures": 1})
        trial = await try_out(system, "Uncounted", {"input": {"anything": [1]}})
    assert (trial["outcome"], len(agent.calls)) == ("error", 1)
    assert trial["error"] is not None
    assert trial["error"]["code"] == "agent_reported_error"
    assert await system.items("/agents/Uncounted/calls") == []
    labels = {"protocol": "simple-a2a", "agent_name": "Uncounted"}
    assert await system.metric("agent_detached_requests_total", **labels, kind="trial") == 1
    assert await system.metric("agent_protocol_requests_total", **labels) is None
    assert (await system.call("GET", "/agents/Uncounted/activity")).json["minutes"] == []
    limits = (await system.call("GET", "/agents/Uncounted")).json["limits"]
    assert isinstance(limits, dict)
    assert isinstance(limits["breaker"], dict)
    assert limits["breaker"]["state"] == "closed"


async def test_the_agents_secret_is_sent_and_not_shown(shared_system: RunningSystem) -> None:
    system = shared_system

    def echo(call: Call) -> Json:
        return simple_success({"said": call.headers["Authorization"]})(call)

    async with ScriptedAgent(echo) as agent:
        await system.register(
            "Guarded",
            agent.url,
            protocol="simple-a2a",
            auth_type="bearer",
            auth_config={"token": SECRET},
        )
        answer = await system.call("POST", "/agents/Guarded/try", {"text": "hello"})
    assert agent.calls[0].headers["Authorization"] == f"Bearer {SECRET}"
    assert answer.status == 200
    assert SECRET.encode() not in answer.body


async def test_a_long_task_is_asked_for_until_it_ends(shared_system: RunningSystem) -> None:
    system = shared_system
    async with ScriptedAgent(jsonrpc_task("", state="working"), jsonrpc_task("done")) as agent:
        await system.register("Slow", agent.url, protocol="a2a-0.3")
        trial = await try_out(system, "Slow", {"text": "hello"})
    assert trial["outcome"] == "success"
    assert [exchange.get("kind") for exchange in trial["exchanges"] if exchange.get("kind") != "card"] == [
        "send",
        "poll",
    ]


async def test_an_agent_that_does_not_answer_is_left_alone_in_time(shared_system: RunningSystem) -> None:
    system = shared_system

    async def never(call: Call) -> Json:
        del call
        await asyncio.Event().wait()
        return None

    async with ScriptedAgent(never) as agent:
        await system.register("Silent", agent.url, protocol="simple-a2a")
        trial = await try_out(system, "Silent", {"text": "hello", "timeout_ms": 2_000})
    assert trial["error"] is not None
    assert (trial["error"]["code"], len(agent.calls)) == ("agent_timeout", 1)
    # What it was given, less what was used to get there, and not the agent's own half minute.
    assert re.search(r"within [12](\.\d+)? s", trial["error"]["message"]), trial["error"]["message"]
    assert trial["exchanges"][0]["response"] is None


async def test_an_agent_that_asks_is_cancelled_because_no_one_can_answer(
    shared_system: RunningSystem,
) -> None:
    system = shared_system
    asks = jsonrpc_task("Which one?", state="input-required")
    async with ScriptedAgent(asks, jsonrpc_task("", state="canceled")) as agent:
        await system.register("Asking", agent.url, protocol="a2a-0.3")
        trial = await try_out(system, "Asking", {"text": "hello"})
    assert trial["outcome"] == "interrupted"
    assert trial["question"] is not None
    assert trial["question"]["text"] == "Which one?"
    assert [call.method for call in agent.calls] == ["message/send", "tasks/cancel"]


async def test_an_address_that_may_not_be_called_is_not_called_for_a_trial_either(
    shared_system: RunningSystem,
) -> None:
    await shared_system.register("Forbidden", "http://169.254.169.254/latest", protocol="simple-a2a")
    trial = await try_out(shared_system, "Forbidden", {"text": "hello"})
    assert trial["error"] is not None
    assert trial["error"]["code"] == "agent_address_forbidden"
    assert trial["error"]["fix"]


@pytest.mark.parametrize(
    "body", [{}, {"text": "a", "input": 1}, {"text": 1}, {"text": "a", "timeout_ms": 60_001}, {"words": "a"}]
)
async def test_a_message_that_is_none_is_refused(shared_system: RunningSystem, body: Json) -> None:
    answer = await shared_system.call("POST", "/agents/nobody/try", body)
    assert answer.status == 422
    assert "fix" in answer.json


async def test_an_agent_that_is_not_there_cannot_be_tried(shared_system: RunningSystem) -> None:
    assert (await shared_system.call("POST", "/agents/nobody/try", {"text": "a"})).status == 404


async def test_a_card_is_shown_as_the_agent_gives_it_without_its_secret(shared_system: RunningSystem) -> None:
    system = shared_system
    async with ScriptedAgent(jsonrpc_task("hi")) as agent:
        agent.publish(card_at(agent.url))
        await system.register("Cardholder", agent.url, auth_type="bearer", auth_config={"token": SECRET})
        unread = await look(system, "Cardholder")
        await system.call("POST", "/agents/Cardholder/refresh")
        same = await look(system, "Cardholder")
        agent.publish({**card_at(agent.url), "name": "Another"})
        changed = await look(system, "Cardholder")
    assert isinstance(unread["card"], dict)
    assert unread["card"]["name"] == "Cardholder"
    assert SECRET not in str(unread["card"])
    assert (unread["changed"], same["changed"], changed["changed"]) == (None, False, True)


async def test_an_agent_without_a_card_says_so(shared_system: RunningSystem) -> None:
    system = shared_system
    async with ScriptedAgent(simple_success("hi")) as agent:
        await system.register("Cardless", agent.url)
        await system.register("Pinned", agent.url, protocol="simple-a2a")
        cardless, pinned = await look(system, "Cardless"), await look(system, "Pinned")
    gone = await look(system, "Cardless")
    assert (cardless["card"], cardless["detail"]) == (None, "HTTP 405")
    assert (pinned["card"], pinned["url"]) == (None, None)
    assert gone["card"] is None
    assert "refused" in gone["detail"].lower()
