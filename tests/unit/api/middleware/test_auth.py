"""How often refused requests are logged: the table of addresses and the number of lines are bounded."""

from __future__ import annotations

from datetime import timedelta

from trunkline.api.middleware.auth import MAX_LOGGED_ADDRESSES, RefusalLog
from trunkline.testing import FakeClock

SECOND = timedelta(seconds=1)


def test_an_address_is_logged_once_a_second_with_the_number_of_those_left_out() -> None:
    clock = FakeClock()
    refusals = RefusalLog(clock)
    assert [refusals.admit("a"), refusals.admit("a"), refusals.admit("b"), refusals.admit("a")] == [
        0,
        None,
        0,
        None,
    ]
    clock.advance(SECOND)
    assert [refusals.admit("a"), refusals.admit("b")] == [2, 0]


def test_more_addresses_than_the_table_has_room_for_are_not_logged_in_the_same_second() -> None:
    clock = FakeClock()
    refusals = RefusalLog(clock)
    assert all(refusals.admit(str(number)) == 0 for number in range(MAX_LOGGED_ADDRESSES))
    assert refusals.admit("one more") is None
    clock.advance(SECOND)
    assert refusals.admit("one more") == 0
    # It has taken the place of the oldest one.
    assert refusals.admit("1") == 0
    assert refusals.admit("0") == 0


def test_a_clock_that_is_set_back_does_not_silence_the_log() -> None:
    clock = FakeClock()
    refusals = RefusalLog(clock)
    assert refusals.admit("a") == 0
    clock.advance(-timedelta(hours=1))
    assert refusals.admit("a") == 0
