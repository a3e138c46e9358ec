"""How an agent's limits stand, as the API shows it."""

from __future__ import annotations

import msgspec

from trunkline.agents import AgentOptions, RateLimit
from trunkline.agents.call_limits.breaker import Breaker
from trunkline.agents.call_limits.token_bucket import refilled, whole_tokens
from trunkline.clock import Instant, rfc3339
from trunkline.stores.base import AgentLoad


class _Breaker(msgspec.Struct):
    state: str
    failures: int
    opened_at: str | None
    retry_at: str | None
    reason: str | None


class _Rate(msgspec.Struct):
    per_second: float
    burst: int
    tokens: int


class LimitsView(msgspec.Struct):
    in_flight: int
    queued: int
    breaker: _Breaker | None
    rate: _Rate | None


def limits_view(options: AgentOptions, load: AgentLoad) -> LimitsView:
    return LimitsView(
        load.in_flight,
        load.queued,
        None if options.breaker is None else _breaker(load.state.breaker),
        None if options.rate is None else _rate(options.rate, load),
    )


def _breaker(breaker: Breaker) -> _Breaker:
    return _Breaker(
        breaker.status,
        breaker.failures,
        _shown(breaker.opened_at),
        _shown(breaker.retry_at),
        breaker.reason,
    )


def _rate(limit: RateLimit, load: AgentLoad) -> _Rate:
    tokens = whole_tokens(refilled(load.state.bucket, limit, load.at))
    return _Rate(limit.per_second, limit.burst, tokens)


def _shown(instant: Instant | None) -> str | None:
    return None if instant is None else rfc3339(instant)
