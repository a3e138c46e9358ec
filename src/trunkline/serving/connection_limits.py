"""
How many connections a server has at once, in total and from one address.

When the limit is reached, the oldest connection without a request is closed. So connections that are only
held open keep no client out; only requests in progress do. The response to a rejected connection is not decided here.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import NamedTuple, Protocol

# One customer of a provider has a whole network of this size.
_IPV6_PREFIX = 64


class ConnectionLimits(NamedTuple):
    total: int = 1_000
    per_address: int = 500


DEFAULT_LIMITS = ConnectionLimits()


class LimitedConnection(Protocol):
    @property
    def is_idle(self) -> bool:
        """No request is in progress: none has arrived completely, or it has its response."""
        ...

    def close_idle(self) -> None: ...


class Slot:
    """The place of one connection, which is set as soon as it exists."""

    __slots__ = ("connection", "group")

    def __init__(self, group: str) -> None:
        self.group = group
        self.connection: LimitedConnection | None = None


class ConnectionSlots:
    """Counts connections, and chooses the one that gives way."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        # In the order in which they were taken.
        self._slots: dict[Slot, None] = {}
        self._by_group: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._slots)

    def take(self, address: str) -> Slot | None:
        """None: too many requests are in progress."""
        group = address_group(address)
        if self._by_group[group] >= self._limits.per_address:
            if not self._evict(group):
                return None
        elif len(self._slots) >= self._limits.total and not self._evict():
            return None
        slot = Slot(group)
        self._slots[slot] = None
        self._by_group[group] += 1
        return slot

    def release(self, slot: Slot) -> None:
        """Also of a slot that is not taken any more."""
        if slot not in self._slots:
            return
        del self._slots[slot]
        self._by_group[slot.group] -= 1
        if not self._by_group[slot.group]:
            del self._by_group[slot.group]

    def evict_oldest(self) -> bool:
        """Whether there was an idle connection to close."""
        return self._evict()

    def _evict(self, group: str | None = None) -> bool:
        for slot in self._slots:
            connection = slot.connection
            if (group is None or slot.group == group) and connection is not None and connection.is_idle:
                self.release(slot)
                connection.close_idle()
                return True
        return False


@lru_cache(maxsize=1_024)
def address_group(address: str) -> str:
    """The address, or the network that one client has with IPv6."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ip_network((parsed, _IPV6_PREFIX), strict=False))
