"""The shares of connections and calls in the file descriptors of a process."""

from __future__ import annotations

import pytest

from trunkline.wiring.descriptors import descriptor_shares


@pytest.mark.parametrize("limit", [256, 1_024, 4_096, 65_536])
def test_connections_and_calls_leave_descriptors_for_the_store(limit: int) -> None:
    shares = descriptor_shares(limit, max_connections=1_000_000)
    assert limit - shares.connections - shares.calls >= 64
    assert min(shares) >= 16


def test_the_setting_limits_connections_where_descriptors_are_plenty() -> None:
    assert descriptor_shares(65_536, max_connections=1_000).connections == 1_000


def test_calls_do_not_get_fewer_when_more_connections_are_allowed() -> None:
    few, many = (descriptor_shares(1_024, allowed) for allowed in (10, 100_000))
    assert few.calls == many.calls > 300
