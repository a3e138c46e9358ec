"""The token bucket of an agent with a rate: pure. A call takes a token; time brings them back, up to the burst."""

from __future__ import annotations

from math import ceil, floor

import msgspec

from trunkline.agents.model import RateLimit
from trunkline.clock import Instant

_MICROSECONDS = 1_000_000
# Bridges read the store's clock at slightly different times. Up to this difference, no time is counted twice. A larger
# difference means that the clock was set back.
_APART = 10 * _MICROSECONDS
# What adding up fractions of a token may have lost.
_ROUNDING_ERROR = 1e-9


class TokenBucket(msgspec.Struct, frozen=True):
    tokens: float
    refilled_at: Instant


def refilled(bucket: TokenBucket | None, limit: RateLimit, now: Instant) -> TokenBucket:
    """As it is now; an unused bucket is full."""
    if bucket is None:
        return TokenBucket(float(limit.burst), now)
    elapsed = now - bucket.refilled_at
    if elapsed < 0:
        refilled_at = bucket.refilled_at if elapsed >= -_APART else now
        return TokenBucket(min(bucket.tokens, float(limit.burst)), refilled_at)
    tokens = bucket.tokens + limit.per_second * elapsed / _MICROSECONDS
    return TokenBucket(min(tokens, float(limit.burst)), now)


def whole_tokens(bucket: TokenBucket) -> int:
    return max(0, floor(bucket.tokens + _ROUNDING_ERROR))


def without(bucket: TokenBucket, tokens: int) -> TokenBucket:
    return TokenBucket(max(0.0, bucket.tokens - tokens), bucket.refilled_at)


def next_token(bucket: TokenBucket, limit: RateLimit) -> Instant:
    """When there is a whole token."""
    missing = max(0.0, 1.0 - bucket.tokens)
    return Instant(bucket.refilled_at + ceil(missing / limit.per_second * _MICROSECONDS))
