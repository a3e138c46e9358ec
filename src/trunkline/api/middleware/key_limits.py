"""
How many requests one API key can have in progress, and start each second.

Without the limits, one client with the smallest role can keep all others waiting. They apply in each process, and only
where API keys are in use. Probes and push notifications need no key, so they are not limited here.
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
from trunkline.stores.base import ApiKey

# A page of the web UI sends several requests at once.
_BURST_SECONDS = 2


class KeyLimits:
    def __init__(self, limits: RequestLimits, clock: Clock) -> None:
        self._clock = clock
        self._max_concurrent = limits.max_requests_per_key
        rate = limits.max_rate_per_key
        self._rate = RateLimit(per_second=rate, burst=rate * _BURST_SECONDS)
        # By id; only keys that exist come here.
        self._in_progress: Counter[str] = Counter()
        self._buckets: dict[str, TokenBucket] = {}

    @contextmanager
    def request(self, key: ApiKey) -> Generator[None]:
        """While the request is in progress. Raises `TooManyRequests`."""
        if self._in_progress[key.id] >= self._max_concurrent:
            raise TooManyRequests(
                f"The API key {key.name} has {self._max_concurrent} requests in progress (max_requests_per_key)."
            )
        bucket = refilled(self._buckets.get(key.id), self._rate, self._clock.now())
        self._buckets[key.id] = bucket
        if not whole_tokens(bucket):
            raise TooManyRequests(
                f"The API key {key.name} sends more than {self._rate.per_second:g} requests per second "
                "(max_rate_per_key)."
            )
        self._buckets[key.id] = without(bucket, 1)
        self._in_progress[key.id] += 1
        try:
            yield
        finally:
            self._in_progress[key.id] -= 1
