"""The span of a request that starts a run, in the trace that its caller names."""

from __future__ import annotations

from starlette.types import Scope

from trunkline.messages import TraceContext
from trunkline.messages.trace import RAW_TRACEPARENT, RAW_TRACESTATE
from trunkline.telemetry.traces import Traces, TraceSpan


def begin_request(traces: Traces, scope: Scope, route: str) -> TraceSpan:
    caller = _caller(scope["headers"])
    if not traces.are_on:
        return traces.propagate(caller)
    method = scope["method"]
    attributes = {"http.request.method": method, "http.route": route, "url.path": scope["path"]}
    return traces.begin(f"{method} {route}", "SERVER", caller, attributes)


def _caller(headers: list[tuple[bytes, bytes]]) -> TraceContext | None:
    parent: bytes | None = None
    states: list[bytes] = []
    for name, value in headers:
        if name == RAW_TRACEPARENT:
            parent = value
        elif name == RAW_TRACESTATE:
            states.append(value)
    return None if parent is None else TraceContext.read(parent, b",".join(states) if states else None)
