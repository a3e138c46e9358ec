"""What operators see: one correlation id from end to end, the metrics, and the log with its levels and ids."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any  # what structlog's lines hold

import pytest
from structlog.testing import capture_logs

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import (
    Call,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_error,
    jsonrpc_task,
    simple_success,
)
from trunkline.testing.agents import Hangup, Reply
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

Lines = Sequence[Mapping[str, Any]]
ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent", "retry": {"max_attempts": 1}}}}


async def test_a_correlation_id_goes_in_through_and_out(system: RunningSystem) -> None:
    headers = {"X-Correlation-ID": "order-4711"}
    with capture_logs() as logs:
        async with ScriptedAgent(jsonrpc_task("", state="working"), jsonrpc_task("ok")) as agent:
            await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
            await system.save(ONE)
            answer = await system.call("POST", "/workflows/one/execute?wait=60", {}, headers)
            wire = await system.items(f"/runs/{answer.json['id']}/wire")
            started, *_ = await system.items(f"/runs/{answer.json['id']}/events")
    assert started["type"] == "RunStarted"
    assert started["data"] == {"correlation_id": "order-4711"}
    assert answer.headers["X-Correlation-ID"] == "order-4711"
    assert answer.json["correlation_id"] == "order-4711"
    assert [call.headers["X-Correlation-ID"] for call in agent.calls] == ["order-4711"] * 2
    for exchange in wire:
        assert "order-4711" in str(exchange["request"])
    of_the_run = [line for line in logs if line.get("run_id") == answer.json["id"]]
    assert {line["event"] for line in of_the_run} >= {"run_started", "http_call", "run_finished"}
    assert {line["correlation_id"] for line in of_the_run} == {"order-4711"}


async def test_every_answer_has_a_correlation_id_and_a_bad_one_is_replaced(system: RunningSystem) -> None:
    made = await system.call("GET", "/runs")
    odd = await system.call("GET", "/runs/nothing", headers={"X-Correlation-ID": "a b"})
    kept = await system.call("GET", "/runs/nothing", headers={"X-Correlation-ID": "a-b"})
    assert made.headers["X-Correlation-ID"]
    assert odd.headers["X-Correlation-ID"] not in ("", "a b")
    assert odd.json["correlation_id"] == odd.headers["X-Correlation-ID"]
    assert kept.json["correlation_id"] == "a-b"


async def test_a_retried_run_belongs_to_the_request_that_retried_it(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_error(-32602, "no"), jsonrpc_task("ok")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE)
        old = await system.run("one")
        headers = {"X-Correlation-ID": "second-try"}
        answer = await system.call("POST", f"/runs/{old['id']}/retry", headers=headers)
        run = await system.wait_for(str(answer.json["id"]))
    assert run["correlation_id"] == "second-try"
    assert agent.calls[1].headers["X-Correlation-ID"] == "second-try"


async def test_the_metrics_count_what_happened(system: RunningSystem) -> None:
    async with (
        ScriptedAgent(simple_success("ok")) as simple,
        ScriptedAgent({"jsonrpc": "1.0"}) as broken,
    ):
        await system.register("Simple", simple.url, protocol="simple-a2a")
        await system.register("Broken", broken.url, protocol="jsonrpc-2.0")
        await system.save({"name": "good", "steps": {"only": {"agent": "Simple"}}})
        await system.save({"name": "bad", "steps": {"only": {"agent": "Broken"}}})
        for name in ("good", "good", "bad"):
            await system.run(name)

    async def metric(name: str, **labels: str) -> float | None:
        return await system.metric(name, **labels)

    requests = "agent_protocol_requests_total"
    assert await metric(requests, protocol="simple-a2a", agent_name="Simple") == 2
    assert await metric(requests, protocol="jsonrpc-2.0", agent_name="Broken") == 1
    durations = "protocol_translation_duration_seconds_count"
    assert await metric(durations, protocol="simple-a2a", direction="request") == 2
    assert await metric(durations, protocol="simple-a2a", direction="response") == 2
    errors = {"protocol": "jsonrpc-2.0", "direction": "response", "error_type": "agent_answer_malformed"}
    assert await metric("protocol_translation_errors_total", **errors) == 1
    assert await metric("trunkline_runs", status="COMPLETED") == 2
    assert await metric("trunkline_runs", status="FAILED") == 1
    assert await metric("trunkline_runs_started_total") == 3
    assert await metric("trunkline_runs_finished_total", status="FAILED") == 1
    assert await metric("trunkline_step_duration_seconds_count", status="COMPLETED") == 2
    assert await metric("trunkline_attempts_total", outcome="success") == 2
    assert await metric("trunkline_attempts_total", outcome="agent_answer_malformed") == 1
    assert await metric("trunkline_calls_in_flight") == 0
    assert await metric("trunkline_rows_without_wake_reason") == 0


async def test_the_gauges_fall_when_the_work_is_done(system: RunningSystem) -> None:
    opened = asyncio.Event()

    async def gate(call: Call) -> Json:
        await opened.wait()
        return simple_success("ok")(call)

    async with ScriptedAgent(gate) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a", max_concurrency=2)
        await system.save(ONE)
        runs = [await system.start("one") for _ in range(5)]
        await agent.called(2)
        assert await system.metric("trunkline_runs", status="RUNNING") == 5
        await system.wait_for_metric("trunkline_queue_depth", 3, queue="tasks_queued")
        assert await system.metric("trunkline_queue_depth", queue="tasks_claimed") == 2
        assert await system.metric("trunkline_calls_in_flight") == 2
        opened.set()
        for run_id in runs:
            await system.wait_for(run_id)
    assert await system.metric("trunkline_runs", status="RUNNING") == 0
    assert await system.metric("trunkline_runs", status="COMPLETED") == 5
    for queue in ("inbox", "timers", "tasks_queued", "tasks_claimed", "tasks_remote"):
        assert await system.metric("trunkline_queue_depth", queue=queue) == 0
    assert await system.metric("trunkline_calls_in_flight") == 0


async def test_every_waiting_run_has_a_reason_to_wake(system: RunningSystem) -> None:
    asking = jsonrpc_task("Which?", state="input-required")
    async with (
        ScriptedAgent(Reply(503)) as busy,
        ScriptedAgent(asking) as asks,
        ScriptedAgent(jsonrpc_task("", state="working")) as works,
        ScriptedAgent(Hangup()) as lost,
    ):
        retry: JsonObject = {"first_delay": "60s"}
        for name, agent in (("busy", busy), ("asks", asks), ("works", works), ("lost", lost)):
            await system.register(name, agent.url, protocol="jsonrpc-2.0", retry=retry)
            delivery = "at_most_once" if name == "lost" else "at_least_once"
            await system.save({"name": name, "steps": {"only": {"agent": name, "delivery": delivery}}})
        ids = {name: await system.start(name) for name in ("busy", "asks", "works", "lost")}
        await system.wait_for_step(ids["busy"], "only", {"WAITING"})
        await system.wait_for(ids["asks"], {"WAITING"})
        await works.called_for("tasks/get")
        await system.wait_for(ids["lost"], {"WAITING"})
        await system.call("POST", f"/runs/{ids['busy']}/pause")
        assert await system.metric("trunkline_rows_without_wake_reason") == 0
        assert await system.metric("trunkline_runs", status="WAITING") == 2
        assert await system.metric("trunkline_runs", status="PAUSED") == 1
        for run_id in ids.values():
            await system.call("POST", f"/runs/{run_id}/cancel")
        for run_id in ids.values():
            await system.wait_for(run_id)
    assert await system.metric("trunkline_rows_without_wake_reason") == 0
    assert await system.metric("trunkline_queue_depth", queue="timers") == 0


def named(logs: Lines, event: str) -> Mapping[str, Any]:
    (line,) = [line for line in logs if line["event"] == event]
    return line


async def test_the_log_of_a_good_call_has_the_promised_events_levels_and_fields(
    system: RunningSystem,
) -> None:
    with capture_logs() as logs:
        async with ScriptedAgent(jsonrpc_task("fine")) as agent:
            await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
            await system.save(ONE)
            run = await system.run("one", {"text": "hi"})
            (exchange,) = await system.items(f"/runs/{run['id']}/wire")
    assert isinstance(exchange["request"], dict)
    assert isinstance(exchange["response"], dict)
    request, response = (
        named(logs, "protocol_request_translation"),
        named(logs, "protocol_response_translation"),
    )
    assert request["log_level"] == response["log_level"] == "debug"
    assert request["protocol"] == response["protocol"] == "jsonrpc-2.0"
    assert repr(request["request"]) == exchange["request"]["body"]
    assert request["input_size"] == len(b'{"text":"hi"}')
    assert repr(response["response"]) == exchange["response"]["body"]
    assert response["response_size"] == len(str(exchange["response"]["body"]))
    assert named(logs, "http_call")["log_level"] == "info"
    output = named(logs, "output_extracted")
    assert output["log_level"] == "info"
    assert '"text":"fine"' in repr(output["output"])


async def test_an_agents_error_is_logged_at_error_with_its_context(system: RunningSystem) -> None:
    with capture_logs() as logs:
        async with ScriptedAgent(jsonrpc_error(-32000, "out of paper")) as agent:
            await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
            await system.save(ONE)
            run = await system.run("one")
    line = named(logs, "call_failed")
    assert line["log_level"] == "error"
    assert line["error"] == "JSON-RPC Error -32000: out of paper"
    assert line["code"] == "agent_jsonrpc_error"
    assert line["task_id"] == f"{run['id']}/only/0"
    assert "out of paper" in repr(line["data"])


async def test_a_long_body_is_cut_in_the_log(system: RunningSystem) -> None:
    with capture_logs() as logs:
        async with ScriptedAgent(simple_success("x" * 100_000)) as agent:
            await system.register("Agent", agent.url, protocol="simple-a2a")
            await system.save(ONE)
            await system.run("one")
    assert len(repr(named(logs, "protocol_response_translation")["response"])) == 4_096
    assert len(repr(named(logs, "output_extracted")["output"])) == 4_096


async def test_every_line_of_a_task_says_whose_it_is(system: RunningSystem) -> None:
    retry: JsonObject = {"max_attempts": 2, "backoff": "fixed", "first_delay": "10ms", "on": ["any"]}
    other_id: JsonObject = {"task_id": 1, "status": "success", "output": 1}
    script = (Hangup(), Reply(500, b"<h1>no</h1>"), other_id)
    with capture_logs() as logs:
        async with ScriptedAgent(*script) as agent:
            await system.register("Agent", agent.url)
            await system.save({"name": "two", "steps": {
                "a": {"agent": "Agent", "retry": retry, "on_error": "continue"},
                "b": {"agent": "Agent", "needs": ["a"]},
                "c": {"agent": "Nobody", "needs": ["b"], "retry": {"max_attempts": 1}},
            }})  # fmt: skip
            run = await system.run("two")
    assert step_of(run, "b")["status"] == "COMPLETED"
    ids = {"run_id", "task_id", "agent_name", "correlation_id", "step", "attempt"}
    about_others = {"http_request", "run_started", "run_finished", "dialect_decided"}
    lines = [line for line in logs if line["event"] not in about_others]
    assert {line["event"] for line in lines} >= {
        "http_call",
        "call_failed",
        "agent_warning",
        "output_extracted",
    }
    assert [line for line in lines if not ids <= line.keys()] == []
    failures = {line["code"] for line in lines if line["event"] == "call_failed"}
    assert failures == {"agent_connection_lost", "agent_http_error", "agent_unknown"}
    assert {line["log_level"] for line in lines if line["event"] == "call_failed"} == {"error"}
