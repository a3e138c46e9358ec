"""
Writes that belong together, as one.

The HTTP server writes an answer's head and its body one after the other, each with a call of the operating system and
each in a packet: the client that waits for the answer is woken twice. Here the first of them waits for the next one;
if none follows at once, it is sent alone.
"""

from __future__ import annotations

import asyncio


class CoalescingTransport:
    """A connection's transport, for the protocol that writes to it."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""

    def write(self, data: bytes) -> None:
        if self._held:
            data, self._held = self._held + data, b""
            self._write(data)
        elif data:
            self._held = data
            self._loop.call_soon(self._flush)

    def can_write_eof(self) -> bool:
        return self._transport.can_write_eof()

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def _flush(self) -> None:
        data, self._held = self._held, b""
        if data:
            self._write(data)

    def _write(self, data: bytes) -> None:
        # The other side may have gone since.
        if not self._transport.is_closing():
            self._transport.write(data)
