from __future__ import annotations

import subprocess
import sys

import pytest
from structlog.testing import capture_logs

from trunkline.messages import TraceContext
from trunkline.telemetry import log_events
from trunkline.telemetry.traces import Traces
from trunkline.wiring.trace_export import open_traces

PARENT = TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1")

pytestmark = pytest.mark.anyio


def test_without_a_provider_the_context_is_passed_on_and_nothing_is_made() -> None:
    traces = Traces()
    assert not traces.are_on
    with traces.begin("name", "CLIENT", PARENT, {}) as segment:
        segment.note({"a": 1})
        segment.fail("code", "message")
        assert segment.trace == PARENT
    assert traces.begin("name", "CLIENT", None, {}) is traces.begin("other", "SERVER", None, {})


@pytest.mark.parametrize("variables", [{}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_SDK_DISABLED": "true"}])
async def test_nothing_is_sent_unless_it_is_asked_for(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if variables:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with capture_logs() as lines:
        async with open_traces() as traces:
            assert not traces.are_on
    assert lines == []


async def test_configured_traces_without_the_extra_name_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    for module in [name for name in sys.modules if name.startswith("opentelemetry.sdk")]:
        monkeypatch.delitem(sys.modules, module)
    # As if it were not installed.
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with capture_logs() as lines:
        async with open_traces() as traces:
            assert not traces.are_on
    (said,) = lines
    assert said["event"] == log_events.TRACES_NOT_SENT
    assert "trunkline[otel]" in said["fix"]


async def test_the_log_shows_no_password_of_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:canary@127.0.0.1:1/otlp")
    with capture_logs() as lines:
        async with open_traces() as traces:
            assert traces.are_on
    assert [line["endpoint"] for line in lines] == ["http://127.0.0.1:1/otlp"]


def test_an_instrumented_process_uses_the_existing_provider() -> None:
    # In a process of its own: a provider can be set once.
    code = """
import asyncio
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from trunkline.wiring.trace_export import open_traces

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)

async def main():
    async with open_traces() as traces:
        with traces.begin("mine", "CLIENT", None, {"a": 1}):
            pass

asyncio.run(main())
# Still open: it is not ours to shut down.
with provider.get_tracer("theirs").start_as_current_span("theirs"):
    pass
print([span.name for span in spans.get_finished_spans()])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "['mine', 'theirs']"
