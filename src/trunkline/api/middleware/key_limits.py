"""
How many requests one client can have in progress, and start each second: an API key, or an address without one.

Without the limits, one client with the smallest role can keep all others waiting. They apply in each process, and only
where API keys are in use. Without a key, only public publications can be called, and their cards. Probes and push
notifications of agents are not limited here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from trunkline.agents import RateLimit
from trunkline.agents.call_limits.token_bucket import TokenBucket, refilled, whole_tokens, without
from trunkline.api.services import RequestLimits
from trunkline.clock import Clock
from trunkline.errors import TooManyRequests
from trunkline.serving.connection_limits import address_group
from trunkline.stores.base import ApiKey

# A page of the web UI sends several requests at once.
_BURST_SECONDS = 2
# Anyone can come from many addresses. The one that was idle longest is forgotten first.
MAX_CLIENTS = 10_000


class _ClientLimits:
    """The limits of all clients of one kind, by what identifies them."""

    def __init__(self, clock: Clock, *, max_concurrent: int, per_second: int) -> None:
        self._clock = clock
        self._max_concurrent = max_concurrent
        self._rate = RateLimit(per_second=per_second, burst=per_second * _BURST_SECONDS)
        self._in_progress: Counter[str] = Counter()
        # The one that came last at the end.
        self._buckets: dict[str, TokenBucket] = {}

    @contextmanager
    def request(self, client: str, shown: str, kind: str) -> Generator[None]:
        if self._in_progress[client] >= self._max_concurrent:
            raise TooManyRequests(
                f"The {shown} has {self._max_concurrent} requests in progress (max_requests_per_{kind})."
            )
        bucket = refilled(self._buckets.pop(client, None), self._rate, self._clock.now())
        self._buckets[client] = bucket
        if len(self._buckets) > MAX_CLIENTS:
            del self._buckets[next(iter(self._buckets))]
        if not whole_tokens(bucket):
            raise TooManyRequests(
                f"The {shown} sends more than {self._rate.per_second:g} requests per second (max_rate_per_{kind})."
            )
        self._buckets[client] = without(bucket, 1)
        self._in_progress[client] += 1
        try:
            yield
        finally:
            self._in_progress[client] -= 1
            if not self._in_progress[client]:
                del self._in_progress[client]


class KeyLimits:
    def __init__(self, limits: RequestLimits, clock: Clock) -> None:
        self._keys = _ClientLimits(
            clock, max_concurrent=limits.max_requests_per_key, per_second=limits.max_rate_per_key
        )
        self._addresses = _ClientLimits(
            clock, max_concurrent=limits.max_requests_per_address, per_second=limits.max_rate_per_address
        )

    @contextmanager
    def request(self, key: ApiKey) -> Generator[None]:
        """While the request is in progress. Raises `TooManyRequests`."""
        with self._keys.request(key.id, f"API key {key.name}", "key"):
            yield

    @contextmanager
    def without_key(self, address: str) -> Generator[None]:
        """The same for a request without a key."""
        group = address_group(address)
        with self._addresses.request(group, f"address {group}", "address"):
            yield
