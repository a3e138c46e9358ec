"""From bytes to lines, as they come; a line that has no end does not fill the memory."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    text: bytes
    # False: it is longer than it may be, and this is its beginning; the rest is passed over.
    is_whole: bool = True


class LineReader:
    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._begun: list[bytes] = []
        self._size = 0
        self._skips = False

    def feed(self, data: bytes) -> list[Line]:
        """The lines that have ended in this, and the beginning of one that has become too long."""
        *ended, rest = data.split(b"\n")
        lines: list[Line] = []
        for piece in ended:
            self._add(piece, lines)
            if not self._skips:
                lines.append(Line(self._take()))
            self._skips = False
        self._add(rest, lines)
        return lines

    def end(self) -> list[Line]:
        """What came behind the last line break."""
        text = self._take()
        return [Line(text)] if text else []

    def _add(self, piece: bytes, lines: list[Line]) -> None:
        if self._skips:
            return
        self._begun.append(piece)
        self._size += len(piece)
        if self._size > self._longest:
            lines.append(Line(self._take()[: self._longest], is_whole=False))
            self._skips = True

    def _take(self) -> bytes:
        text = b"".join(self._begun).removesuffix(b"\r")
        self._begun.clear()
        self._size = 0
        return text
