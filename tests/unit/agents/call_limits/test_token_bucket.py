"""How fast tokens come back, and when the next one is there."""

from __future__ import annotations

from datetime import timedelta

import pytest

from trunkline.agents import RateLimit
from trunkline.agents.call_limits.token_bucket import TokenBucket, next_token, refilled, whole_tokens, without
from trunkline.clock import Instant, after

NOW = Instant(1_767_225_600_000_000)
LIMIT = RateLimit(per_second=10, burst=3)


def later(milliseconds: float) -> Instant:
    return after(NOW, timedelta(milliseconds=milliseconds))


def test_an_unused_bucket_is_full() -> None:
    assert whole_tokens(refilled(None, LIMIT, NOW)) == 3


def test_time_brings_tokens_back_up_to_the_burst() -> None:
    empty = TokenBucket(0.0, NOW)
    assert whole_tokens(refilled(empty, LIMIT, later(99))) == 0
    assert whole_tokens(refilled(empty, LIMIT, later(100))) == 1
    assert whole_tokens(refilled(empty, LIMIT, later(250))) == 2
    assert whole_tokens(refilled(empty, LIMIT, later(60_000))) == 3


def test_a_part_of_a_token_is_kept() -> None:
    bucket = without(refilled(TokenBucket(0.0, NOW), LIMIT, later(150)), 1)
    assert whole_tokens(refilled(bucket, LIMIT, later(200))) == 1


@pytest.mark.parametrize("per_second", [0.01, 0.3, 3.0, 7.0, 33.3, 999.0])
def test_at_the_moment_of_the_next_token_it_is_there_and_not_before(per_second: float) -> None:
    limit = RateLimit(per_second=per_second)
    bucket = refilled(None, limit, NOW)
    for _ in range(1_000):
        bucket = without(bucket, 1)
        moment = next_token(bucket, limit)
        assert whole_tokens(refilled(bucket, limit, Instant(moment - 10))) == 0
        bucket = refilled(bucket, limit, moment)
        assert whole_tokens(bucket) == 1
    # No faster than its rate, and no slower than the rounding of each wait to a microsecond.
    exactly = 1_000 / per_second * 1_000_000
    assert exactly - 1_000 <= bucket.refilled_at - NOW <= exactly + 1_000


def test_a_clock_that_was_set_back_brings_nothing_and_takes_nothing_away() -> None:
    bucket = refilled(TokenBucket(1.5, NOW), LIMIT, later(-60_000))
    assert bucket == TokenBucket(1.5, later(-60_000))


def test_a_bridge_whose_clock_is_a_little_behind_brings_no_token_early() -> None:
    bucket = refilled(TokenBucket(0.0, NOW), LIMIT, later(-5))
    assert bucket == TokenBucket(0.0, NOW)
    assert whole_tokens(refilled(bucket, LIMIT, later(99))) == 0


def test_a_burst_that_was_lowered_holds_at_once() -> None:
    assert whole_tokens(refilled(TokenBucket(3.0, NOW), RateLimit(per_second=10, burst=1), NOW)) == 1
