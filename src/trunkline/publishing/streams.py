"""
Streams of tasks: first the task as it is, then its updates in order, as server-sent events.

The task has no id, every update has one. A caller that names the last id it has seen (`Last-Event-ID`) gets what comes
after it, from any replica. A stream only reads: a caller that goes away ends nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager

from starlette.types import Receive, Scope, Send

from trunkline.api.event_streams import PING_AFTER_SECONDS, ByteStream
from trunkline.ids import RunId
from trunkline.jsontypes import JsonObject, encode
from trunkline.publishing.errors import A2AError, ErrorKind
from trunkline.publishing.tasks import INTERRUPTED_STATES, TERMINAL_STATES
from trunkline.publishing.updates import Position, TaskUpdates, Update
from trunkline.services.runs.queries import RunQueries

# A notification may be lost or arrive in another process; reading once a second is the guarantee.
_LOOK_AGAIN_SECONDS = 1.0
_PING = b": ping\n\n"
# Each takes a connection and some kilobytes; a process is left with room for everything else.
MAX_STREAMS = 5_000
# One caller cannot take them all.
MAX_STREAMS_OF_A_CALLER = 2_500


class OpenStreams:
    """Counts the streams and the waiting requests of this process, and refuses more than there may be."""

    def __init__(self, most: int = MAX_STREAMS, most_of_a_caller: int = MAX_STREAMS_OF_A_CALLER) -> None:
        self._most = most
        self._most_of_a_caller = most_of_a_caller
        self._open: dict[str, int] = {}

    @property
    def number(self) -> int:
        return sum(self._open.values())

    def take(self, caller: str) -> None:
        """One more, until `release`. Raises `A2AError` if there are too many."""
        mine = self._open.get(caller, 0)
        if mine >= self._most_of_a_caller or self.number >= self._most:
            raise A2AError(
                ErrorKind.UNAVAILABLE, "Too many streams are open. Close some, or try again later."
            )
        self._open[caller] = mine + 1

    def release(self, caller: str) -> None:
        self._open[caller] -= 1
        if not self._open[caller]:
            del self._open[caller]

    @contextmanager
    def one(self, caller: str) -> Generator[None]:
        self.take(caller)
        try:
            yield
        finally:
            self.release(caller)


class TaskStream(ByteStream):
    """
    One stream of one task. `write` gives the data of an event, and gets whether the stream ends with that.

    `stays`: it goes on while the task waits for its caller, as a subscription does. The stream was taken from `streams`
    before, and is released at its end.
    """

    def __init__(
        self,
        queries: RunQueries,
        updates: TaskUpdates,
        first: JsonObject,
        run_id: RunId,
        position: Position,
        *,
        write: Callable[[JsonObject, bool], JsonObject],
        stays: bool,
        caller: str,
        streams: OpenStreams,
        stopping: asyncio.Event,
        ping_after: float = PING_AFTER_SECONDS,
    ) -> None:
        super().__init__(stopping, ping_after)
        self._queries = queries
        self._updates = updates
        self._first = first
        self._run_id = run_id
        self._position = position
        self._write = write
        self._stays = stays
        self._caller = caller
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.release(self._caller)

    async def _chunks(self) -> AsyncIterator[bytes]:
        yield self._event(None, self._first, is_last=False)
        position = self._position
        now = asyncio.get_running_loop().time
        ping_at = now() + self._ping_after
        with self._queries.watch(self._run_id) as watch:
            while True:
                updates, position, is_over = await self._updates.after(position)
                if updates:
                    ping_at = now() + self._ping_after
                    chunk, has_ended = self._events(updates)
                    yield chunk
                    is_over = is_over or has_ended
                if is_over:
                    return
                if not updates:
                    await watch.changed(min(_LOOK_AGAIN_SECONDS, max(ping_at - now(), 0)))
                    if now() >= ping_at:
                        ping_at = now() + self._ping_after
                        yield _PING

    def _events(self, updates: list[Update]) -> tuple[bytes, bool]:
        """Up to the one that ends the stream, and whether there is one."""
        chunks: list[bytes] = []
        for update in updates:
            ends = update.state in TERMINAL_STATES or (not self._stays and update.state in INTERRUPTED_STATES)
            chunks.append(self._event(update.id, update.body, is_last=ends))
            if ends:
                return b"".join(chunks), True
        return b"".join(chunks), False

    def _event(self, event_id: str | None, body: JsonObject, *, is_last: bool) -> bytes:
        # JSON text has no raw line break, so one data line holds it.
        named = b"" if event_id is None else f"id: {event_id}\n".encode()
        return named + b"data: " + encode(self._write(body, is_last)) + b"\n\n"
