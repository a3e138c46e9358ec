"""A request that a thread sends while its caller may stop waiting: whether it is sent is decided once, for both."""

from __future__ import annotations

from threading import Lock
from time import monotonic

# What may be left of a deadline that has passed in the moment of sending: no socket waits for 0 seconds.
_LEAST_SECONDS = 0.001


class RequestAbandoned(Exception):
    """The request must not be sent: its caller has gone, or it was sent before."""


class PendingRequest:
    def __init__(self, deadline: float) -> None:
        # By the monotonic clock.
        self._deadline = deadline
        self._lock = Lock()
        self._is_sent = False
        self._is_abandoned = False

    @property
    def is_sent(self) -> bool:
        return self._is_sent

    @property
    def is_abandoned(self) -> bool:
        return self._is_abandoned

    def send(self) -> float:
        """For the thread, just before it sends the request: how many seconds are left. Raises `RequestAbandoned`."""
        with self._lock:
            if self._is_abandoned or self._is_sent:
                raise RequestAbandoned
            self._is_sent = True
        return max(self._deadline - monotonic(), _LEAST_SECONDS)

    def abandon(self) -> bool:
        """For a caller that stops waiting: whether the request was sent. If it was not, it never will be."""
        with self._lock:
            self._is_abandoned = True
            return self._is_sent
