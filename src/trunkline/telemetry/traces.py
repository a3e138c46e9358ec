"""
Traces: spans by the conventions of OpenTelemetry, and the W3C context that ties them together over processes.

A run's spans are made where something happens, and each is the child of the one before:

    API       the request that starts the run   SERVER    (a command's record: CONSUMER)
    executor  the dispatch of a step's task     PRODUCER
    bridge    each request to the agent         CLIENT

Without a provider no span is made and nothing of OpenTelemetry is loaded: a caller's context is passed on as it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, Self

from trunkline import __version__
from trunkline.errors import TrunklineError
from trunkline.messages import TraceContext
from trunkline.messages.trace import TRACEPARENT, TRACESTATE

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, TracerProvider

SpanKind = Literal["SERVER", "CLIENT", "PRODUCER", "CONSUMER"]
Attributes = Mapping[str, str | int | float | bool]


class TraceSpan(Protocol):
    """One span, or none; it ends with its block."""

    @property
    def trace(self) -> TraceContext | None:
        """The context that is propagated to services called from here."""
        ...

    def note(self, attributes: Attributes) -> None: ...

    def fail(self, error_type: str, message: str = "") -> None: ...

    def end(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Traces:
    """The spans of this process. One without a provider makes none."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = None if provider is None else provider.get_tracer("trunkline", __version__)

    @property
    def are_on(self) -> bool:
        return self._tracer is not None

    def begin(
        self, name: str, kind: SpanKind, parent: TraceContext | None, attributes: Attributes
    ) -> TraceSpan:
        """A child of `parent`; without one, a trace of its own. What it costs to name it is the caller's to save."""
        if self._tracer is None:
            return self.propagate(parent)
        from opentelemetry.trace import SpanKind as Kinds  # noqa: PLC0415 - only where there are spans

        span = self._tracer.start_span(
            name, context=_context(parent), kind=Kinds[kind], attributes=dict(attributes)
        )
        return _OpenTelemetrySpan(span)

    def propagate(self, parent: TraceContext | None) -> TraceSpan:
        return _NO_CONTEXT if parent is None else _PropagatedContext(parent)


class _PropagatedContext:
    """No span: only the context, as it came."""

    __slots__ = ("trace",)

    def __init__(self, trace: TraceContext | None) -> None:
        self.trace = trace

    def note(self, attributes: Attributes) -> None:
        """Nothing is recorded without a span."""

    def fail(self, error_type: str, message: str = "") -> None:
        """As above."""

    def end(self) -> None:
        """It never began."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """As `end`."""


_NO_CONTEXT = _PropagatedContext(None)


class _OpenTelemetrySpan:
    def __init__(self, span: Span) -> None:
        self._span = span
        self.trace = _trace_of(span)

    def note(self, attributes: Attributes) -> None:
        self._span.set_attributes(attributes)

    def fail(self, error_type: str, message: str = "") -> None:
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 - as above

        self._span.set_attribute("error.type", error_type)
        self._span.set_status(Status(StatusCode.ERROR, message or None))

    def end(self) -> None:
        self._span.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        # No message and no stack: they may quote what was sent.
        if isinstance(error, TrunklineError):
            self.note({"error.type": type(error).__name__})
        elif kind is not None:
            self.fail(kind.__name__)
        self.end()


def _context(parent: TraceContext | None) -> Context:
    from opentelemetry.context import Context as Contexts  # noqa: PLC0415 - as above
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    return TraceContextTextMapPropagator().extract(trace_headers(parent), Contexts())


def _trace_of(span: Span) -> TraceContext | None:
    context = span.get_span_context()
    if not context.is_valid:
        return None
    traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    return TraceContext(traceparent, context.trace_state.to_header() or None)


def trace_headers(trace: TraceContext | None) -> dict[str, str]:
    """The context as headers of a request."""
    if trace is None:
        return {}
    if trace.tracestate is None:
        return {TRACEPARENT: trace.traceparent}
    return {TRACEPARENT: trace.traceparent, TRACESTATE: trace.tracestate}
