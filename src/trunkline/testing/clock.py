"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import timedelta

from trunkline.clock import Instant, after

# 2026-01-01T00:00:00Z
_START = Instant(1_767_225_600_000_000)


class FakeClock:
    def __init__(self, start: Instant = _START) -> None:
        self._now = start

    def now(self) -> Instant:
        return self._now

    def advance(self, by: timedelta) -> None:
        self._now = after(self._now, by)
