"""How many connections there may be, in total and from one address, and which one has to go for another."""

from __future__ import annotations

import pytest

from trunkline.serving.connection_limits import ConnectionLimits, ConnectionSlots, Slot, address_group


class FakeConnection:
    """What the slots need to know of a connection."""

    def __init__(self, *, is_idle: bool) -> None:
        self.is_idle = is_idle
        self.is_closed = False

    def close_idle(self) -> None:
        self.is_closed = True


def slots(total: int, per_address: int) -> ConnectionSlots:
    return ConnectionSlots(ConnectionLimits(total, per_address))


def take(taken: ConnectionSlots, address: str, *, is_idle: bool = False) -> tuple[Slot, FakeConnection]:
    slot = taken.take(address)
    assert slot is not None
    slot.connection = connection = FakeConnection(is_idle=is_idle)
    return slot, connection


def test_busy_connections_fill_the_total() -> None:
    taken = slots(2, 2)
    take(taken, "192.0.2.1")
    slot, _ = take(taken, "192.0.2.2")
    assert taken.take("192.0.2.3") is None
    taken.release(slot)
    taken.release(slot)
    take(taken, "192.0.2.3")
    assert taken.take("192.0.2.4") is None


def test_busy_connections_fill_what_one_address_may_have() -> None:
    taken = slots(10, 2)
    take(taken, "192.0.2.1")
    take(taken, "192.0.2.1")
    assert taken.take("192.0.2.1") is None
    take(taken, "192.0.2.2")


def test_the_oldest_idle_connection_goes_for_a_new_one() -> None:
    taken = slots(3, 3)
    _, busy = take(taken, "192.0.2.1")
    _, oldest = take(taken, "192.0.2.2", is_idle=True)
    _, newest = take(taken, "192.0.2.3", is_idle=True)
    take(taken, "192.0.2.4")
    assert [each.is_closed for each in (busy, oldest, newest)] == [False, True, False]
    assert len(taken) == 3


def test_an_address_that_has_its_share_gives_up_one_of_its_own() -> None:
    taken = slots(10, 2)
    _, other = take(taken, "192.0.2.1", is_idle=True)
    _, first = take(taken, "192.0.2.2", is_idle=True)
    take(taken, "192.0.2.2")
    take(taken, "192.0.2.2")
    assert (other.is_closed, first.is_closed) == (False, True)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth0", True),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address(one: str, other: str, *, same: bool) -> None:
    assert (address_group(one) == address_group(other)) is same
