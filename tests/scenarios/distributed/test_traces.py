"""One trace over three processes and a topic."""

from __future__ import annotations

import pytest
from tests.scenarios.distributed.in_process_roles import serving_roles
from tests.scenarios.distributed.topic_records import TopicReader
from tests.scenarios.trace_collector import collecting

from trunkline.jsontypes import JsonObject, encode
from trunkline.testing import ScriptedAgent, jsonrpc_task

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{CALLER}-01"
ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent"}}}


async def test_a_trace_goes_with_the_task_over_the_topic_to_the_agent(
    kafka: TopicReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with collecting() as collector, ScriptedAgent(jsonrpc_task("done")) as agent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        async with serving_roles("api") as api, serving_roles("executor"), serving_roles("bridge"):
            await api.register("Agent", agent.url, protocol="jsonrpc-2.0")
            await api.save(ONE)
            run_id = await api.start("one", {}, {"traceparent": TRACEPARENT, "tracestate": "congo=1"})
            assert (await api.wait_for(run_id))["status"] == "COMPLETED"
        (call,) = agent.calls
        (record,) = await kafka.written(kafka.topics.tasks)
    request = collector.one("POST /api/v1/workflows/{workflow}/execute")
    dispatch = collector.one("dispatch only")
    invoked = collector.one("invoke_agent Agent")
    assert [request.parent_id, dispatch.parent_id, invoked.parent_id] == [
        CALLER,
        request.span_id,
        dispatch.span_id,
    ]
    assert record.headers["traceparent"].decode() == f"00-{TRACE_ID}-{dispatch.span_id}-01"
    assert record.headers["tracestate"] == b"congo=1"
    assert call.headers["traceparent"] == f"00-{TRACE_ID}-{invoked.span_id}-01"
    assert call.headers["tracestate"] == "congo=1"


async def test_a_command_brings_its_trace_in_the_headers_of_its_record(
    kafka: TopicReader, commands: str
) -> None:
    async with ScriptedAgent(jsonrpc_task("done")) as agent:
        async with serving_roles("api", "executor", "bridge") as system:
            await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
            await system.save(ONE)
            await kafka.write(
                commands, encode({"workflow": "one"}), b"key", {"traceparent": TRACEPARENT.encode()}
            )
            await system.wait_for_metric("trunkline_runs_finished_total", 1, status="COMPLETED")
        (call,) = agent.calls
    assert call.headers["traceparent"] == TRACEPARENT
