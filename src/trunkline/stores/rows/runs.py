"""A trace context as the two columns that every store has for it."""

from __future__ import annotations

from trunkline.messages import TraceContext


def written_trace(trace: TraceContext | None) -> tuple[str | None, str | None]:
    return (None, None) if trace is None else (trace.traceparent, trace.tracestate)


def read_trace(traceparent: str | None, tracestate: str | None) -> TraceContext | None:
    return None if traceparent is None else TraceContext(traceparent, tracestate)
