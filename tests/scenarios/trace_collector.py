"""Who gets the traces: a real OTLP receiver over HTTP, on a free port of this machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

Value = str | int | bool


class Span(NamedTuple):
    name: str
    # As the standard numbers them: 2 server, 3 client, 4 producer, 5 consumer.
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Value]
    is_error: bool
    service: Value


class OtlpCollector:
    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Span] = []
        self.bodies: list[bytes] = []

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> Span:
        (span,) = self.named(name)
        return span

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.bodies.append(body)
        export = ExportTraceServiceRequest.FromString(body)
        for resource in export.resource_spans:
            service = _attributes(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                self.spans += [
                    Span(
                        span.name,
                        span.kind,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        _attributes(span.attributes),
                        span.status.code == 2,
                        service,
                    )
                    for span in scope.spans
                ]
        return web.Response(
            body=ExportTraceServiceResponse().SerializeToString(), content_type="application/x-protobuf"
        )


def _attributes(pairs: Sequence[KeyValue]) -> dict[str, Value]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in pairs}


@asynccontextmanager
async def collecting() -> AsyncGenerator[OtlpCollector]:
    collector = OtlpCollector()
    app = web.Application()
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield collector
    finally:
        await runner.cleanup()
