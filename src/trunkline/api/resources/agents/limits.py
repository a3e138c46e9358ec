"""An agent's retry policy, rate limit and circuit breaker, and their current state."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from msgspec import Meta

from trunkline.agents import AgentOptions, RateLimit
from trunkline.agents.call_limits.breaker import Breaker, BreakerStatus
from trunkline.agents.call_limits.token_bucket import refilled, whole_tokens
from trunkline.api.resources.common import Timestamp, time_or_none
from trunkline.jsontypes import Json
from trunkline.stores.base import AgentLoad

DURATION_PATTERN = r"^[0-9]{1,12}(\.[0-9]{1,3})?(ms|s|m|h|d)$"


def _default(value: Json) -> Meta:
    return Meta(extra_json_schema={"default": value})


Duration = Annotated[
    str,
    Meta(
        description="A number with a unit: `100ms`, `25s`, `5m`, `1h`, `2d`.",
        pattern=DURATION_PATTERN,
        examples=["25s"],
    ),
]
# An HTTP status or class, a JSON-RPC code, or an error code. msgspec cannot express two ranges of numbers in a union.
RetryCondition = Annotated[
    Json,
    Meta(
        extra_json_schema={
            "anyOf": [
                {"type": "integer", "minimum": 100, "maximum": 599},
                {"type": "integer", "maximum": -1},
                {"type": "string", "pattern": "^(any|no_answer|[1-5]xx|[a-z]+(_[a-z]+)*)$"},
            ]
        }
    ),
]


class RetryPolicyResource(TypedDict, total=False):
    """When and how often a failed call is retried."""

    max_attempts: Annotated[int, Meta(ge=1, le=1000), _default(3)]
    backoff: Annotated[Literal["fixed", "linear", "exponential"], _default("exponential")]
    first_delay: Annotated[Duration, _default("1s")]
    max_delay: Annotated[Duration, _default("1m")]
    jitter: Annotated[bool, _default(True)]
    on: Annotated[
        list[RetryCondition],
        Meta(
            description="`no_answer`, an HTTP status or class (`5xx`), a JSON-RPC code, an error code, or `any`."
        ),
        _default(["no_answer", 408, 425, 429, "5xx"]),
    ]


class RateLimitResource(TypedDict):
    """Maximum calls per second over all bridges, and the burst size."""

    per_second: Annotated[float, Meta(gt=0, le=100_000)]
    burst: NotRequired[Annotated[int, Meta(ge=1, le=100_000), _default(1)]]


class BreakerPolicyResource(TypedDict, total=False):
    """When the circuit breaker stops calls to an agent, and when it lets them through again."""

    failures: Annotated[
        int, Meta(ge=1, le=10_000, description="Consecutive failures that open the breaker."), _default(5)
    ]
    rate: Annotated[
        float,
        Meta(
            gt=0, le=1, description="Share of failures among the last `window` calls that opens the breaker."
        ),
        _default(0.5),
    ]
    window: Annotated[int, Meta(ge=1, le=10_000), _default(20)]
    open_ms: Annotated[
        int,
        Meta(ge=1, le=86_400_000, description="How long the breaker stays open, in milliseconds."),
        _default(30_000),
    ]
    probes: Annotated[
        int,
        Meta(ge=1, le=10_000, description="Probe calls allowed at a time while the breaker is half-open."),
        _default(1),
    ]
    jsonrpc_errors: Annotated[
        bool, Meta(description="Whether a JSON-RPC error counts as a failure."), _default(False)
    ]


class BreakerState(TypedDict):
    """The state of an agent's circuit breaker."""

    state: BreakerStatus
    failures: Annotated[int, Meta(description="Consecutive failures.")]
    opened_at: Timestamp | None
    retry_at: Annotated[Timestamp | None, Meta(description="When the next probe call is allowed.")]
    reason: Annotated[str | None, Meta(description="Why the breaker is open.")]


class RateState(TypedDict):
    per_second: float
    burst: int
    tokens: Annotated[int, Meta(description="Calls that can start immediately.")]


class AgentLimits(TypedDict):
    """The load of an agent over all bridges, and the state of its limits."""

    in_flight: int
    queued: Annotated[
        int, Meta(description="Tasks that wait for a free slot, the rate limit or the circuit breaker.")
    ]
    breaker: Annotated[BreakerState | None, Meta(description="Null if the agent has no circuit breaker.")]
    rate: Annotated[RateState | None, Meta(description="Null if the agent has no rate limit.")]


def agent_limits(options: AgentOptions, load: AgentLoad) -> AgentLimits:
    return {
        "in_flight": load.in_flight,
        "queued": load.queued,
        "breaker": None if options.breaker is None else _breaker_state(load.state.breaker),
        "rate": None if options.rate is None else _rate_state(options.rate, load),
    }


def _breaker_state(breaker: Breaker) -> BreakerState:
    return {
        "state": breaker.status,
        "failures": breaker.failures,
        "opened_at": time_or_none(breaker.opened_at),
        "retry_at": time_or_none(breaker.retry_at),
        "reason": breaker.reason,
    }


def _rate_state(limit: RateLimit, load: AgentLoad) -> RateState:
    tokens = whole_tokens(refilled(load.state.bucket, limit, load.at))
    return {"per_second": limit.per_second, "burst": limit.burst, "tokens": tokens}
