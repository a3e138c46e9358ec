"""
The parser of server-sent events: of agents' streams, and of the API's for the command line.

    : a comment
    event: message
    id: 7
    data: {"jsonrpc": "2.0",
    data:  "result": {…}}
    (an empty line)

Lines end with LF, CRLF or CR. The parser keeps only the line and the event that are not complete yet, and both are
bounded. It never returns an event that the end of the stream leaves unfinished.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

_UTF8_BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    data: bytes
    event: str = "message"
    # The last id that the stream has named, by this event or an earlier one.
    id: str | None = None


class SseLimitExceeded(ValueError):
    """A line or an event of a stream is longer than it may be."""

    def __init__(self, what: Literal["line", "event"], limit: int) -> None:
        super().__init__(f"The stream has {_ARTICLE[what]} {what} of more than {limit:,} bytes")
        self.what = what
        self.limit = limit


_ARTICLE = {"line": "a", "event": "an"}


class SseParser:
    """Reads one stream; `max_event_bytes` counts an event's data."""

    def __init__(self, *, max_line_bytes: int, max_event_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._max_event_bytes = max_event_bytes
        self._line = bytearray()
        self._data = bytearray()
        self._has_data = False
        self._event = ""
        self._id: str | None = None
        self._at_start = True
        self._after_carriage_return = False
        self._too_long: SseLimitExceeded | None = None

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """
        The events that this chunk completes.

        Raises `SseLimitExceeded`, but not before the events that came ahead of the excess have been given out.
        """
        if self._too_long is not None:
            raise self._too_long
        events: list[SseEvent] = []
        try:
            self._read(chunk, events)
        except SseLimitExceeded as exc:
            self._too_long = exc
            # The error holds on to us for as long as anybody keeps it.
            self._line.clear()
            self._data.clear()
            if not events:
                raise
        return events

    def _read(self, chunk: bytes, events: list[SseEvent]) -> None:
        if self._after_carriage_return and chunk:
            # The second half of a CRLF whose first half ended the last chunk.
            chunk = chunk.removeprefix(b"\n")
            self._after_carriage_return = False
        for piece in chunk.splitlines(keepends=True):
            content = piece.rstrip(b"\r\n")
            if len(self._line) + len(content) > self._max_line_bytes:
                raise SseLimitExceeded("line", self._max_line_bytes)
            if len(content) == len(piece):
                self._line += content
                return
            if self._line:
                self._line += content
                content = bytes(self._line)
                self._line.clear()
            event = self._take_line(content)
            if event is not None:
                events.append(event)
        self._after_carriage_return = chunk.endswith(b"\r")

    def _take_line(self, line: bytes) -> SseEvent | None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_UTF8_BOM)
        if not line:
            return self._complete()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._add(value)
        elif field == b"event":
            self._event = value.decode(errors="replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
        return None

    def _add(self, value: bytes) -> None:
        if len(self._data) + len(value) + self._has_data > self._max_event_bytes:
            raise SseLimitExceeded("event", self._max_event_bytes)
        if self._has_data:
            self._data += b"\n"
        self._data += value
        self._has_data = True

    def _complete(self) -> SseEvent | None:
        name, self._event = self._event, ""
        if not self._has_data:
            return None
        event = SseEvent(bytes(self._data), name or "message", self._id)
        self._data.clear()
        self._has_data = False
        return event
