"""How many requests one API key can send, and have in progress."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta

import pytest

from trunkline.api.middleware.key_limits import MAX_CLIENTS, KeyLimits
from trunkline.api.services import RequestLimits
from trunkline.clock import Instant
from trunkline.errors import TooManyRequests
from trunkline.stores.base import ApiKey
from trunkline.testing import FakeClock


def key(name: str) -> ApiKey:
    return ApiKey(id=name, name=name, role="viewer", digest=b"", created_at=Instant(0))


def test_a_key_has_so_many_requests_in_progress_and_others_are_not_affected() -> None:
    limits = KeyLimits(RequestLimits(max_requests_per_key=2), FakeClock())
    with ExitStack() as in_progress:
        for _ in range(2):
            in_progress.enter_context(limits.request(key("a")))
        with pytest.raises(TooManyRequests, match=r"The API key a has 2 requests in progress"):
            in_progress.enter_context(limits.request(key("a")))
        in_progress.enter_context(limits.request(key("b")))
    with limits.request(key("a")):
        pass


def test_a_key_sends_so_many_requests_a_second_and_others_are_not_affected() -> None:
    clock = FakeClock()
    limits = KeyLimits(RequestLimits(max_rate_per_key=2), clock)

    def admitted(name: str) -> int:
        for number in range(100):
            try:
                with limits.request(key(name)):
                    pass
            except TooManyRequests:
                return number
        return 100

    # Two seconds' worth may come at once.
    assert (admitted("a"), admitted("b")) == (4, 4)
    clock.advance(timedelta(seconds=1))
    assert admitted("a") == 2
    # A clock that is set back refuses nobody for long.
    clock.advance(-timedelta(hours=1))
    assert admitted("a") == 0
    clock.advance(timedelta(seconds=1))
    assert admitted("a") == 2


def test_an_address_without_a_key_has_limits_of_its_own() -> None:
    limits = KeyLimits(RequestLimits(max_requests_per_address=1, max_rate_per_address=2), FakeClock())
    with ExitStack() as in_progress:
        in_progress.enter_context(limits.without_key("2001:db8::1"))
        # Of the same network.
        with pytest.raises(TooManyRequests, match=r"The address 2001:db8::/64 has 1 requests in progress"):
            in_progress.enter_context(limits.without_key("2001:db8::2"))
        in_progress.enter_context(limits.without_key("192.0.2.1"))
        in_progress.enter_context(limits.request(key("192.0.2.1")))
    for _ in range(3):
        with limits.without_key("192.0.2.1"):
            pass
    with (
        pytest.raises(TooManyRequests, match=r"more than 2 requests per second \(max_rate_per_address\)"),
        limits.without_key("192.0.2.1"),
    ):
        pass


def test_addresses_beyond_the_limit_take_no_memory() -> None:
    limits = KeyLimits(RequestLimits(max_rate_per_address=1), FakeClock())
    with limits.without_key("192.0.2.1"):
        pass
    for number in range(MAX_CLIENTS):
        with limits.without_key(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"):
            pass
    # It has been forgotten, so it may send its burst again.
    for _ in range(2):
        with limits.without_key("192.0.2.1"):
            pass
    with pytest.raises(TooManyRequests), limits.without_key("192.0.2.1"):
        pass


def test_a_request_that_fails_is_not_in_progress_any_more() -> None:
    limits = KeyLimits(RequestLimits(max_requests_per_key=1), FakeClock())
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), limits.request(key("a")):
            raise ZeroDivisionError
