"""
Writes log lines; those of one turn of the event loop together, since each write costs as much as making the line.

A warning, or worse, is written at once, with all that came before it.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from contextlib import suppress
from typing import BinaryIO


class LineWriter:
    """What structlog calls a logger: a method for each level."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lines: list[bytes] = []
        self._lock = threading.Lock()
        atexit.register(self.flush)

    def _soon(self, line: bytes) -> None:
        with self._lock:
            self._lines.append(line)
            is_first = len(self._lines) == 1
        if is_first:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:
                # In a thread, or before the loop runs.
                self.flush()

    def _now(self, line: bytes) -> None:
        with self._lock:
            self._lines.append(line)
        self.flush()

    debug = info = _soon
    warning = error = critical = _now

    def flush(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
            if lines:
                # Whoever read the log has gone: the work goes on without one.
                with suppress(OSError, ValueError):
                    self._stream.write(b"\n".join([*lines, b""]))
                    self._stream.flush()
