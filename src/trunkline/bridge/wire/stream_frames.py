"""
The events of one stream, as many as a record keeps: the first ones, and the last ones.

What lies between them is counted. How a stream began and how it ended is what people look for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter

import msgspec

from trunkline.telemetry.redaction import Redaction, redacted_text

# All in all, where nothing else is set.
MAX_BYTES = 64 * 1024
# Of that, for how the stream ended; the rest is for how it began.
_LAST_SHARE = 4
# What one event takes in a record in addition to its data; a stream of empty events must be bounded, too.
_FRAME_BYTES = 32


class StreamFrame(msgspec.Struct, frozen=True):
    """One event: when it came, in milliseconds after the request, and its data."""

    at_ms: float
    data: str


class StreamFrameRecorder:
    """Made when the request goes out; `add` is called for every event as it comes."""

    def __init__(
        self,
        redaction: Redaction,
        now: Callable[[], float] = perf_counter,
        *,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._redaction = redaction
        self._now = now
        self._started = now()
        self._first: list[StreamFrame] = []
        self._last: deque[StreamFrame] = deque()
        self._last_room = max_bytes // _LAST_SHARE
        self._first_room = max_bytes - self._last_room
        # Even the longest event finds room among the last.
        self._longest = self._last_room - _FRAME_BYTES
        self._cut = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        at_ms = round((self._now() - self._started) * 1000, 3)
        cut: list[str] = []
        frame = StreamFrame(at_ms, redacted_text(data, self._redaction, "An event", cut, self._longest))
        self._cut += bool(cut)
        size = _size(frame)
        # Once one did not fit, no later one goes to the first: they are without a gap.
        if size <= self._first_room:
            self._first.append(frame)
            self._first_room -= size
            return
        self._first_room = 0
        self._last.append(frame)
        self._last_room -= size
        while self._last_room < 0:
            self._last_room += _size(self._last.popleft())
            self.dropped += 1

    @property
    def kept(self) -> list[StreamFrame]:
        return [*self._first, *self._last]

    @property
    def notes(self) -> list[str]:
        """What `kept` does not show."""
        notes: list[str] = []
        if self._cut:
            notes.append(f"Events that are truncated or not UTF-8: {self._cut}.")
        if self.dropped:
            notes.append(
                f"Events that are not kept: {self.dropped}, after the first {len(self._first)} of the stream."
            )
        return notes

    def as_body(self) -> str:
        """The stream as text; events that are not kept leave a comment, as SSE has them."""
        gap = [f": {self.dropped} events are not kept\n\n"] if self.dropped else []
        return "".join((*map(_event, self._first), *gap, *map(_event, self._last)))


def _size(frame: StreamFrame) -> int:
    return len(frame.data.encode()) + _FRAME_BYTES


def _event(frame: StreamFrame) -> str:
    return "".join(f"data: {line}\n" for line in frame.data.split("\n")) + "\n"
