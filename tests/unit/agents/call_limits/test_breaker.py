"""When a breaker opens, what it lets through, and what closes it again."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from trunkline.agents import BreakerPolicy
from trunkline.agents.call_limits.breaker import (
    CLOSED,
    Breaker,
    CallEnd,
    after_begun,
    after_ended,
    calls_allowed,
)
from trunkline.clock import Instant, after

NOW = Instant(1_767_225_600_000_000)
OK = CallEnd(failed=False)
BAD = CallEnd(failed=True, error="HTTP 503")
NEITHER = CallEnd(failed=None)
POLICY = BreakerPolicy(failures=3, rate=0.5, window=10, open_ms=1_000, probes=2)
IN_A_ROW = BreakerPolicy(failures=3, rate=1.0, window=100)


def ended(*ends: CallEnd, breaker: Breaker = CLOSED, policy: BreakerPolicy = POLICY) -> Breaker:
    return after_ended(breaker, policy, ends, NOW)


def opened() -> Breaker:
    return ended(BAD, BAD, BAD)


def half_open(calls: int = 1) -> Breaker:
    return after_begun(opened(), POLICY, calls, later(1_000))


def later(milliseconds: int) -> Instant:
    return after(NOW, timedelta(milliseconds=milliseconds))


def test_calls_that_end_well_change_nothing() -> None:
    assert ended(OK, OK, OK) == CLOSED
    assert calls_allowed(CLOSED, POLICY, NOW) is None


def test_failures_in_a_row_open_it_and_say_why() -> None:
    assert ended(BAD, BAD).status == "closed"
    breaker = opened()
    assert (breaker.status, breaker.failures) == ("open", 3)
    assert breaker.reason == "3 consecutive failures, the last one: HTTP 503"
    assert (breaker.opened_at, breaker.retry_at) == (NOW, later(1_000))


def test_a_success_breaks_the_row() -> None:
    assert ended(BAD, BAD, OK, BAD, BAD, policy=IN_A_ROW).status == "closed"


def test_a_share_of_the_last_calls_opens_it_though_no_row_is_long() -> None:
    ends = [BAD, OK] * 4
    assert ended(*ends).status == "closed"
    breaker = ended(*ends, BAD)
    assert (breaker.status, breaker.reason) == (
        "open",
        "5 failures in the last 10 calls, the last one: HTTP 503",
    )


def test_what_failed_before_the_last_calls_is_forgotten() -> None:
    breaker = ended(BAD, BAD, *[OK] * 10)
    assert breaker == CLOSED


def test_a_success_never_opens_it() -> None:
    narrow = BreakerPolicy(failures=100, rate=0.5, window=4)
    breaker = ended(BAD, policy=narrow)
    wider = ended(OK, breaker=msgspec.structs.replace(breaker, recent="101"), policy=narrow)
    assert wider.status == "closed"


def test_a_call_that_tells_nothing_counts_as_neither() -> None:
    assert ended(BAD, NEITHER, BAD, NEITHER).failures == 2


def test_an_open_one_lets_nothing_through_until_its_time() -> None:
    assert calls_allowed(opened(), POLICY, later(999)) == 0
    assert calls_allowed(opened(), POLICY, later(1_000)) == 2


def test_what_began_before_it_opened_does_not_move_it() -> None:
    assert ended(OK, BAD, breaker=opened()) == opened()


def test_half_open_lets_so_many_probes_through_and_no_more() -> None:
    breaker = half_open(1)
    assert (breaker.status, breaker.probing) == ("half_open", 1)
    assert calls_allowed(breaker, POLICY, later(1_001)) == 1
    assert calls_allowed(after_begun(breaker, POLICY, 1, later(1_001)), POLICY, later(1_001)) == 0


def test_a_probe_that_succeeds_closes_it() -> None:
    assert ended(OK, breaker=half_open()) == CLOSED


def test_a_probe_that_fails_opens_it_again_for_as_long() -> None:
    breaker = after_ended(half_open(), POLICY, [BAD], later(1_500))
    assert (breaker.status, breaker.retry_at) == ("open", later(2_500))
    assert breaker.reason == "the probe failed: HTTP 503"


def test_a_probe_that_tells_nothing_makes_room_for_another() -> None:
    breaker = ended(NEITHER, breaker=half_open(2))
    assert calls_allowed(breaker, POLICY, later(1_001)) == 1


def test_probes_without_a_result_are_replaced() -> None:
    breaker = half_open(2)
    assert calls_allowed(breaker, POLICY, later(1_999)) == 0
    assert calls_allowed(breaker, POLICY, later(2_000)) == 2
    again = after_begun(breaker, POLICY, 2, later(2_000))
    assert (again.probing, again.retry_at) == (2, later(3_000))


def test_a_long_error_is_cut() -> None:
    policy = BreakerPolicy(failures=2)
    breaker = ended(BAD, CallEnd(failed=True, error="x" * 10_000), policy=policy)
    assert breaker.reason is not None
    assert breaker.reason.startswith("2 consecutive failures, the last one: xxx")
    assert len(breaker.reason) == 500
