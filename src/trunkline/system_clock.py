"""The clock of the machine that the process runs on."""

from __future__ import annotations

import time

from trunkline.clock import Instant


class SystemClock:
    def now(self) -> Instant:
        return Instant(time.time_ns() // 1_000)
