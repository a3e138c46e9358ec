"""The shared state of an agent's rate limit and breaker, and the calls that it allows. Deterministic, no I/O."""

from __future__ import annotations

import msgspec

from trunkline.agents.call_limits.breaker import CLOSED, Breaker, after_begun, calls_allowed
from trunkline.agents.call_limits.token_bucket import TokenBucket, next_token, refilled, whole_tokens, without
from trunkline.agents.model import AgentOptions
from trunkline.clock import Instant


class AgentLimitState(msgspec.Struct, frozen=True, kw_only=True):
    breaker: Breaker = CLOSED
    # None: no token has been taken yet, it is full.
    bucket: TokenBucket | None = None


# The state of an agent that has not been called yet.
INITIAL_STATE = AgentLimitState()


def allowed_calls(state: AgentLimitState, options: AgentOptions, now: Instant) -> int | None:
    """How many calls may begin now; None: as many as there are."""
    most: list[int] = []
    if options.rate is not None:
        most.append(whole_tokens(refilled(state.bucket, options.rate, now)))
    if options.breaker is not None:
        allowed = calls_allowed(state.breaker, options.breaker, now)
        most += [] if allowed is None else [allowed]
    return min(most, default=None)


def after_calls_begun(
    state: AgentLimitState, options: AgentOptions, calls: int, now: Instant
) -> AgentLimitState:
    """After so many calls were let through."""
    bucket, breaker = state.bucket, state.breaker
    if options.rate is not None and calls:
        bucket = without(refilled(bucket, options.rate, now), calls)
    if options.breaker is not None:
        breaker = after_begun(breaker, options.breaker, calls, now)
    return AgentLimitState(breaker=breaker, bucket=bucket)


def next_call_at(state: AgentLimitState, options: AgentOptions, now: Instant) -> Instant | None:
    """When a call may begin that may not begin now; None: at once."""
    waits: list[Instant] = []
    if options.rate is not None:
        bucket = refilled(state.bucket, options.rate, now)
        waits += [] if whole_tokens(bucket) else [next_token(bucket, options.rate)]
    breaker = state.breaker
    if options.breaker is not None and breaker.retry_at is not None:
        waits += [] if calls_allowed(breaker, options.breaker, now) else [breaker.retry_at]
    return max(waits, default=None)
