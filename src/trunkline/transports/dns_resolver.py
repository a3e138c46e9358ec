"""
Host names to addresses that may be called.

The connector asks here and nowhere else, and connects to what it gets, so the address that was checked is the
address that is reached: a name that answers differently a moment later (rebinding) gains nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

from aiohttp.abc import AbstractResolver, ResolveResult

from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.base import TransportError

# A name and a port to the addresses the name has now; raises OSError when it has none.
Lookup = Callable[[str, int], Awaitable[Sequence[str]]]


async def system_lookup(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]


class GuardedResolver(AbstractResolver):
    def __init__(self, policy: AddressPolicy, lookup: Lookup = system_lookup) -> None:
        self._policy = policy
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        del family  # both; which one answers is the connector's to find out
        addresses = await self._lookup(host, port)
        if not addresses:
            raise OSError(f"{host} has no address")
        refused = {address: self._policy.check(host, address) for address in addresses}
        allowed = [address for address, reason in refused.items() if reason is None]
        if not allowed:
            reasons = "; ".join(filter(None, refused.values()))
            raise TransportError("agent_address_forbidden", f"{host} may not be called: {reasons}.")
        return [_result(host, address, port) for address in allowed]

    async def close(self) -> None:
        """Nothing is held."""


def _result(host: str, address: str, port: int) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET6 if ":" in address else socket.AF_INET,
        proto=socket.IPPROTO_TCP,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
