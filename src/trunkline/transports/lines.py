"""Splits bytes into lines as they come; a line without an end does not fill the memory."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    text: bytes
    # False: it is longer than it may be, and this is its beginning; the rest is passed over.
    is_whole: bool = True


class LineReader:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pending: list[bytes] = []
        self._size = 0
        self._is_skipping = False

    def feed(self, data: bytes) -> list[Line]:
        """The lines that have ended in this, and the beginning of one that has become too long."""
        *ended, rest = data.split(b"\n")
        lines: list[Line] = []
        for piece in ended:
            self._add(piece, lines)
            if not self._is_skipping:
                lines.append(Line(self._take()))
            self._is_skipping = False
        self._add(rest, lines)
        return lines

    def end(self) -> list[Line]:
        """What came behind the last line break."""
        text = self._take()
        return [Line(text)] if text else []

    def _add(self, piece: bytes, lines: list[Line]) -> None:
        if self._is_skipping:
            return
        self._pending.append(piece)
        self._size += len(piece)
        if self._size > self._max_bytes:
            lines.append(Line(self._take()[: self._max_bytes], is_whole=False))
            self._is_skipping = True

    def _take(self) -> bytes:
        text = b"".join(self._pending).removesuffix(b"\r")
        self._pending.clear()
        self._size = 0
        return text
