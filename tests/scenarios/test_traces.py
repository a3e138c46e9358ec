"""One trace from the caller to the agents, whether or not Trunkline's own spans are sent anywhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.scenarios.trace_collector import OtlpCollector, Span, collecting

from trunkline.jsontypes import Json, JsonObject
from trunkline.telemetry import log_events
from trunkline.testing import Call, RunningSystem, ScriptedAgent, jsonrpc_error, jsonrpc_task, running_system
from trunkline.testing.agents import Reply

pytestmark = pytest.mark.anyio

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{CALLER}-01"
TRACESTATE = "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"
HEADERS = {"traceparent": TRACEPARENT, "tracestate": TRACESTATE}
ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent", "retry": {"max_attempts": 1}}}}
CANARY = "canary/7f3a+19"
SERVER, CLIENT, PRODUCER = 2, 3, 4


@pytest.fixture
async def collector(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[OtlpCollector]:
    async with collecting() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        yield running


async def run_one(
    system: RunningSystem, agent: ScriptedAgent, headers: dict[str, str], **fields: Json
) -> JsonObject:
    await system.register("Agent", agent.url, protocol="jsonrpc-2.0", **fields)
    await system.save(ONE)
    return await system.wait_for(await system.start("one", {"text": "hi"}, headers))


def parent_of(call: Call) -> list[str]:
    return call.headers["traceparent"].split("-")


async def test_one_trace_leads_from_the_caller_to_the_agent(collector: OtlpCollector, tmp_path: Path) -> None:
    async with ScriptedAgent(jsonrpc_task("done")) as agent:
        async with running_system(tmp_path / "data") as system:
            run = await run_one(system, agent, HEADERS)
        (call,) = agent.calls
    request = collector.one("POST /api/v1/workflows/{workflow}/execute")
    dispatch = collector.one("dispatch only")
    invoked = collector.one("invoke_agent Agent")
    chain = [request, dispatch, invoked]
    assert [span.trace_id for span in chain] == [TRACE_ID] * 3
    assert [span.kind for span in chain] == [SERVER, PRODUCER, CLIENT]
    assert [span.parent_id for span in chain] == [CALLER, request.span_id, dispatch.span_id]
    assert [span.attributes["trunkline.run_id"] for span in chain] == [run["id"]] * 3
    assert {span.service for span in chain} == {"trunkline"}
    assert parent_of(call) == ["00", TRACE_ID, invoked.span_id, "01"]
    assert call.headers["tracestate"] == TRACESTATE


async def test_a_call_says_what_the_conventions_ask_for(collector: OtlpCollector, tmp_path: Path) -> None:
    def answer(call: Call) -> Json:
        return {
            "jsonrpc": "2.0",
            "id": call.id,
            "result": {
                "kind": "task",
                "id": "t-1",
                "contextId": "c-1",
                "status": {"state": "completed"},
                "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "done"}]}],
                "metadata": {"adk_usage_metadata": {"promptTokenCount": 7, "candidatesTokenCount": 5}},
            },
        }

    async with ScriptedAgent(answer) as agent:
        async with running_system(tmp_path / "data") as system:
            await run_one(system, agent, {})
        (call,) = agent.calls
    expected = {
        "rpc.system": "jsonrpc",
        "rpc.method": "message/send",
        "rpc.jsonrpc.version": "2.0",
        "rpc.jsonrpc.request_id": call.id,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "Agent",
        "gen_ai.conversation.id": "c-1",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 5,
        "http.response.status_code": 200,
        "server.address": "127.0.0.1",
        "trunkline.step": "only",
        "trunkline.attempt": 1,
        "trunkline.exchange": "send",
    }
    span = collector.one("invoke_agent Agent")
    assert {name: span.attributes[name] for name in expected} == expected
    assert not span.is_error


async def test_without_a_trace_of_the_caller_one_begins_at_the_api(
    collector: OtlpCollector, tmp_path: Path
) -> None:
    async with ScriptedAgent(jsonrpc_task("done")) as agent:
        async with running_system(tmp_path / "data") as system:
            await run_one(system, agent, {"traceparent": "00-nonsense-01"})
        (call,) = agent.calls
    request = collector.one("POST /api/v1/workflows/{workflow}/execute")
    assert request.parent_id == ""
    assert parent_of(call)[1] == request.trace_id
    assert {span.trace_id for span in collector.spans} == {request.trace_id}


async def test_questions_after_a_long_task_are_in_the_same_trace(
    collector: OtlpCollector, tmp_path: Path
) -> None:
    async with ScriptedAgent(jsonrpc_task("", state="working"), jsonrpc_task("done")) as agent:
        async with running_system(tmp_path / "data") as system:
            await run_one(system, agent, HEADERS)
        sent, asked = agent.calls
    dispatch = collector.one("dispatch only")
    poll = collector.one("poll Agent")
    assert poll.parent_id == dispatch.span_id
    assert poll.attributes["rpc.method"] == "tasks/get"
    assert parent_of(asked) == ["00", TRACE_ID, poll.span_id, "01"]
    assert parent_of(sent)[1] == TRACE_ID


async def test_a_failure_is_an_error_with_its_code(collector: OtlpCollector, tmp_path: Path) -> None:
    script = jsonrpc_error(-32603, "broken")
    async with ScriptedAgent(script) as agent, running_system(tmp_path / "data") as system:
        await run_one(system, agent, HEADERS)
    span = collector.one("invoke_agent Agent")
    assert span.is_error
    assert span.attributes["rpc.jsonrpc.error_code"] == -32603
    assert span.attributes["error.type"] == "agent_jsonrpc_error"


async def test_no_secret_is_in_a_span(collector: OtlpCollector, tmp_path: Path) -> None:
    body = f'{{"jsonrpc":"2.0","id":null,"error":{{"code":-32603,"message":"no: {CANARY}"}}}}'
    async with ScriptedAgent(Reply(500, body.encode(), {"x-echo": CANARY})) as agent:
        async with running_system(tmp_path / "data") as system:
            auth: JsonObject = {"token": CANARY}
            await run_one(system, agent, HEADERS, auth_type="bearer", auth_config=auth)
        assert agent.calls[0].headers["Authorization"] == f"Bearer {CANARY}"
    assert collector.one("invoke_agent Agent").is_error
    assert not [body for body in collector.bodies if CANARY.encode() in body]


async def test_without_a_collector_the_callers_trace_is_passed_on_as_it_came(
    system: RunningSystem,
) -> None:
    async with ScriptedAgent(jsonrpc_task("done")) as agent:
        run = await run_one(system, agent, HEADERS)
        (call,) = agent.calls
    assert run["trace_id"] == TRACE_ID
    assert call.headers["traceparent"] == TRACEPARENT
    assert call.headers["tracestate"] == TRACESTATE


async def test_without_a_collector_and_a_trace_agents_get_none(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_task("done")) as agent:
        run = await run_one(system, agent, {})
        (call,) = agent.calls
    assert "traceparent" not in call.headers
    assert "trace_id" not in run


async def test_a_caller_that_is_not_sampled_costs_no_span(collector: OtlpCollector, tmp_path: Path) -> None:
    async with ScriptedAgent(jsonrpc_task("done")) as agent:
        async with running_system(tmp_path / "data") as system:
            await run_one(system, agent, {"traceparent": f"00-{TRACE_ID}-{CALLER}-00"})
        (call,) = agent.calls
    assert parent_of(call)[1] == TRACE_ID
    assert parent_of(call)[3] == "00"
    assert collector.spans == list[Span]()


@pytest.mark.embedded_only
async def test_the_start_says_where_traces_go(collector: OtlpCollector, tmp_path: Path) -> None:
    with capture_logs() as lines:
        async with running_system(tmp_path / "data"):
            pass
    said = [line for line in lines if line["event"] == log_events.TRACES]
    assert [(line["exporter"], line["endpoint"]) for line in said] == [("otlp", collector.url)]


@pytest.mark.embedded_only
async def test_an_exporter_that_is_not_there_is_said_and_nothing_else_suffers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    with capture_logs() as lines:
        async with running_system(tmp_path / "data") as system, ScriptedAgent(jsonrpc_task("done")) as agent:
            run = await run_one(system, agent, HEADERS)
    assert run["status"] == "COMPLETED"
    (said,) = [line for line in lines if line["event"] == log_events.TRACES_NOT_SENT]
    assert "zipkin" in said["reason"]
    assert said["fix"]


@pytest.mark.embedded_only
async def test_a_collector_that_is_away_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with collecting() as gone:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", gone.url)
    async with running_system(tmp_path / "data") as system, ScriptedAgent(jsonrpc_task("done")) as agent:
        run = await run_one(system, agent, HEADERS)
    assert run["status"] == "COMPLETED"
