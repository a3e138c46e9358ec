"""When the new side of an agent is given up."""

from __future__ import annotations

import pytest

from trunkline.agents.migration import RolloutLimits
from trunkline.agents.migration.rollback_rules import (
    EMPTY_WINDOW,
    CallWindow,
    EndpointCallEnd,
    after_calls,
    decode_window,
    encode_window,
    reason_to_roll_back,
)

LIMITS = RolloutLimits(error_rate=0.1, window=20, calls=10, slowdown=3)
WELL = EndpointCallEnd(failed=False, ms=100)
BADLY = EndpointCallEnd(failed=True, ms=5)


def window(*ends: EndpointCallEnd, rollout: int = 1) -> CallWindow:
    return CallWindow(rollout_since=rollout, ends=ends)


def took(ms: int, times: int = 10) -> CallWindow:
    return window(*[EndpointCallEnd(failed=False, ms=ms)] * times)


def test_too_few_calls_say_nothing() -> None:
    assert reason_to_roll_back(EMPTY_WINDOW, window(*[BADLY] * 9), LIMITS) is None
    assert reason_to_roll_back(EMPTY_WINDOW, window(*[BADLY] * 10), LIMITS) is not None


@pytest.mark.parametrize(("failed", "is_enough"), [(0, False), (2, False), (3, True), (20, True)])
def test_more_failures_than_the_limit_allows_roll_back(failed: int, is_enough: bool) -> None:
    new = window(*[BADLY] * failed, *[WELL] * (20 - failed))
    reason = reason_to_roll_back(EMPTY_WINDOW, new, LIMITS)
    assert (reason is not None) == is_enough
    if reason is not None:
        assert reason == f"{failed} of the last 20 calls to the target failed, and the limit is 10%"


def test_only_the_last_calls_count() -> None:
    full = after_calls(window(*[BADLY] * 20), 1, [WELL] * 20, LIMITS)
    assert full == window(*[WELL] * 20)
    assert reason_to_roll_back(EMPTY_WINDOW, full, LIMITS) is None


def test_calls_of_an_earlier_trial_do_not_count_and_a_new_trial_begins_afresh() -> None:
    begun = after_calls(window(*[BADLY] * 20, rollout=1), 7, [WELL], LIMITS)
    assert begun == window(WELL, rollout=7)
    assert after_calls(begun, 1, [BADLY] * 20, LIMITS) == begun


def test_a_target_that_is_too_slow_compared_with_the_source_is_rolled_back() -> None:
    assert reason_to_roll_back(took(100), took(300), LIMITS) is None
    reason = reason_to_roll_back(took(100), took(301), LIMITS)
    assert reason == (
        "95 % of the calls to the target take up to 301 ms, to the source up to 100 ms, "
        "and the limit is 3 times as long"
    )


def test_an_unnoticeable_difference_is_not_called_slow() -> None:
    assert reason_to_roll_back(took(2), took(200), LIMITS) is None


def test_an_old_side_that_was_hardly_called_is_no_measure() -> None:
    assert reason_to_roll_back(took(100, times=9), took(5_000), LIMITS) is None


def test_an_old_side_of_an_earlier_trial_is_no_measure() -> None:
    earlier = CallWindow(rollout_since=1, ends=took(100).ends)
    assert reason_to_roll_back(earlier, CallWindow(rollout_since=2, ends=took(5_000).ends), LIMITS) is None


def test_a_limit_in_milliseconds_needs_no_old_side() -> None:
    limits = RolloutLimits(calls=10, slowest_ms=1_000)
    assert reason_to_roll_back(EMPTY_WINDOW, took(1_000), limits) is None
    reason = reason_to_roll_back(EMPTY_WINDOW, took(1_001), limits)
    assert reason == "95 % of the calls to the target take up to 1001 ms, and the limit is 1000 ms"


def test_one_slow_call_in_a_hundred_is_not_held_against_it() -> None:
    new = window(*took(100, times=99).ends, EndpointCallEnd(failed=False, ms=60_000))
    limits = RolloutLimits(calls=10, window=100, slowest_ms=1_000)
    assert reason_to_roll_back(EMPTY_WINDOW, new, limits) is None


def test_a_quick_failure_does_not_make_the_side_quick() -> None:
    old = window(*[BADLY] * 15, *took(400).ends)
    assert reason_to_roll_back(old, took(600), LIMITS) is None


def test_a_window_is_kept_as_it_was() -> None:
    kept = window(WELL, BADLY, rollout=4)
    assert encode_window(kept) == b'{"trial":4,"ends":[[false,100],[true,5]]}'
    assert decode_window(encode_window(kept)) == kept
    assert decode_window(None) == EMPTY_WINDOW
