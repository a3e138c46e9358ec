"""
Where traces go: what the OTEL_… variables of the environment say, and nowhere without them.

The SDK is the extra `otel`. A process that is instrumented from outside already has a provider.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from trunkline import __version__
from trunkline.telemetry import log_events
from trunkline.telemetry.traces import Traces

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

log = structlog.stdlib.get_logger()

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_DEFAULT_ENDPOINT = "http://localhost:4318"
# How long a stop waits for the last spans; a collector that is away must not hold it up.
_LAST_SECONDS = 3.0


@asynccontextmanager
async def open_traces() -> AsyncGenerator[Traces]:
    """While the block runs spans are sent; at its end what is left of them is, for a little while."""
    found = _instrumented()
    if found is not None:
        log.info(log_events.TRACES, exporter="instrumented")
        yield Traces(found)
        return
    provider = _configured()
    if provider is None:
        yield Traces()
        return
    try:
        yield Traces(provider)
    finally:
        await _shut_down(provider)


def _instrumented() -> TracerProvider | None:
    sdk = sys.modules.get("opentelemetry.sdk.trace")
    if sdk is None:
        return None
    from opentelemetry.sdk.trace import TracerProvider as Provider  # noqa: PLC0415 - an extra
    from opentelemetry.trace import get_tracer_provider  # noqa: PLC0415 - only where it is loaded already

    provider = get_tracer_provider()
    return provider if isinstance(provider, Provider) else None


def _configured() -> TracerProvider | None:
    name = _wanted()
    if name is None:
        return None
    try:
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import TracerProvider as Provider  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - an extra

        exporter = _exporter(name)
    except ImportError:
        log.warning(
            log_events.TRACES_NOT_SENT,
            reason="The OTEL_… variables enable tracing, but the OpenTelemetry SDK is not installed.",
            fix="Install trunkline[otel], or set OTEL_TRACES_EXPORTER=none.",
        )
        return None
    if exporter is None:
        log.warning(
            log_events.TRACES_NOT_SENT,
            reason=f"Unsupported value of OTEL_TRACES_EXPORTER: {name}.",
            fix="Use otlp, console or none.",
        )
        return None
    resource = Resource.create({"service.version": __version__})
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "trunkline"}))
    provider = Provider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    log.info(log_events.TRACES, exporter=name, endpoint=_endpoint() if name == "otlp" else None)
    return provider


def _wanted() -> str | None:
    """The exporter's name. The standard's own default would send everybody's traces to a port of this machine."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    name = os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if name:
        return None if name == "none" else name
    return "otlp" if any(os.environ.get(endpoint) for endpoint in _ENDPOINTS) else None


def _exporter(name: str) -> SpanExporter | None:
    match name:
        case "otlp":
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - an extra
                OTLPSpanExporter,
            )

            return OTLPSpanExporter()
        case "console":
            from opentelemetry.sdk.trace.export import ConsoleSpanExporter  # noqa: PLC0415 - an extra

            # Stdout has the one line that scripts wait for.
            return ConsoleSpanExporter(out=sys.stderr)
        case _:
            return None


def _endpoint() -> str:
    # Without a user's name and password, which a URL may have.
    given = urlsplit(next(filter(None, map(os.environ.get, _ENDPOINTS)), _DEFAULT_ENDPOINT))
    return f"{given.scheme}://{given.netloc.rpartition('@')[2]}{given.path}"


async def _shut_down(provider: TracerProvider) -> None:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def shut_down() -> None:
        provider.shutdown()
        with suppress(RuntimeError):  # too late: the loop is closed
            loop.call_soon_threadsafe(done.set)

    # A thread of its own that ends with the process: those of a pool would be waited for.
    Thread(target=shut_down, name="last-spans", daemon=True).start()
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_SECONDS):
            await done.wait()
