"""
Host names to addresses that may be called.

The connection pool asks here and nowhere else, and connects to what it gets, so the address that was checked is the
address that is reached: a name that answers differently a moment later (rebinding) gains nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic

from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.base import TransportError

# A name and a port to the addresses the name has now; raises OSError when it has none.
Lookup = Callable[[str, int], Awaitable[Sequence[str]]]

_KEPT_SECONDS = 5
_MAX_KEPT = 4_096


async def system_lookup(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]


class GuardedResolver:
    """Looks each name up once every few seconds, however many connections are opened at once."""

    def __init__(self, policy: AddressPolicy, lookup: Lookup = system_lookup) -> None:
        self._policy = policy
        self._lookup = lookup
        # With the time of the monotonic clock until which they count.
        self._kept: dict[tuple[str, int], tuple[float, list[str]]] = {}
        self._running: dict[tuple[str, int], asyncio.Task[list[str]]] = {}

    async def addresses(self, host: str, port: int) -> list[str]:
        """
        The addresses of a host that may be called, at least one, beginning with another one each time.

        Raises `OSError`: it has none. Raises `TransportError`: none of them may be called.
        """
        key = host, port
        until, addresses = self._kept.get(key, (0.0, []))
        if until <= monotonic():
            addresses = await self._look_up(key)
        found = list(addresses)
        addresses.append(addresses.pop(0))
        return found

    async def resolve(self, host: str, port: int) -> list[str]:
        addresses = await self._lookup(host, port)
        if not addresses:
            raise OSError(f"{host} has no address")
        refused = {address: self._policy.check(host, address) for address in addresses}
        allowed = [address for address, reason in refused.items() if reason is None]
        if not allowed:
            reasons = "; ".join(filter(None, refused.values()))
            raise TransportError("agent_address_forbidden", f"{host} may not be called: {reasons}.")
        return allowed

    async def _look_up(self, key: tuple[str, int]) -> list[str]:
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = asyncio.create_task(self._resolve_and_keep(key))
            running.add_done_callback(_retrieve_exception)
        # Others may wait for it, too.
        return await asyncio.shield(running)

    async def _resolve_and_keep(self, key: tuple[str, int]) -> list[str]:
        try:
            addresses = await self.resolve(*key)
        finally:
            del self._running[key]
        if len(self._kept) >= _MAX_KEPT:
            self._kept.clear()
        self._kept[key] = monotonic() + _KEPT_SECONDS, addresses
        return addresses


def _retrieve_exception(task: asyncio.Task[list[str]]) -> None:
    """Looks at how a lookup ended whose callers have all gone, so that asyncio does not report it."""
    if not task.cancelled():
        task.exception()
