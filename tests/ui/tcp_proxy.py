"""A proxy between the browser and Trunkline that a test can cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

_CHUNK = 65_536
_EVENTS = b"/events"


class TcpProxy:
    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        # Those that the history of a run comes over.
        self._streams: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self.url = ""

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    async def cut(self) -> int:
        """Breaks the streams off in the middle; how many there were."""
        broken = len(self._streams)
        for writer in list(self._streams):
            writer.transport.abort()
        self._streams.clear()
        return broken

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def close(self) -> None:
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._target.hostname, self._target.port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._requests(reader, back, writer))
                group.create_task(_pass_on(there, writer))
        finally:
            self._streams.discard(writer)
            for end in (writer, back):
                end.close()

    async def _requests(
        self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, writer: asyncio.StreamWriter
    ) -> None:
        while chunk := await _read(reader):
            if _EVENTS in chunk.partition(b"\r\n")[0]:
                self._streams.add(writer)
            back.write(chunk)
            await back.drain()
        back.write_eof()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await _read(reader):
        writer.write(chunk)
        try:
            await writer.drain()
        except ConnectionError:
            # Cut: the other end has to go too.
            return
    writer.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(_CHUNK)
    except ConnectionError:
        return b""


@asynccontextmanager
async def tcp_proxy_to(target: str) -> AsyncGenerator[TcpProxy]:
    line = TcpProxy(target)
    server = await asyncio.start_server(line.accept, "127.0.0.1", 0)
    line.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        try:
            yield line
        finally:
            await line.close()
