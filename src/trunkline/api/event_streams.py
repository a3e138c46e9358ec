"""
Streams: a run's events and a change notification for lists of runs (both as server-sent events), and the audit log as
JSON lines.

The streams only read committed data. A client that disconnects ends only its own stream. To resume the events of a run,
it sends the last `id` that it has seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trunkline.api.middleware.auth import wait_until_revoked
from trunkline.api.paging import read_within
from trunkline.api.resources.runs import event_resource
from trunkline.api.resources.system import audit_entry
from trunkline.api.services import Services
from trunkline.errors import Unavailable
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.machine.state import FINAL_RUN_STATUSES
from trunkline.services.operations.audit_log import AuditFollower
from trunkline.stores.base import EventRecord

EVENT_STREAM = "text/event-stream"
JSON_LINES = "application/x-ndjson"
# Proxies commonly cut connections that are silent for 30 to 60 seconds.
PING_AFTER_SECONDS = 15.0
# A notification may be lost or arrive in another process; reading once a second is the guarantee.
_LOOK_AGAIN_SECONDS = 1.0
# Read at once; fewer if they are large.
_BATCH = 500
_PING = b": ping\n\n"
# All changes in between are one event: a client that reads the list after each event reads it at most twice a second.
_PAUSE_SECONDS = 0.5
RUNS_CHANGED = b"event: runs_changed\ndata: {}\n\n"


def encode_event(event: EventRecord) -> bytes:
    # JSON text has no raw line break, so one data line holds it.
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (
        event.seq,
        event.type.encode(),
        encode(event_resource(event)),
    )


class ByteStream(Response):
    """Chunks of text, until there are no more, the client goes away, its API key is revoked, or the process stops."""

    media_type = EVENT_STREAM
    # Headers travel with the first body: a client sees that it is connected before the first event.
    greeting = b": hello\n\n"

    def __init__(self, stopping: asyncio.Event, ping_after: float) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        # The length of a stream is not known when it begins.
        del self.headers["content-length"]
        self._stopping = stopping
        self._ping_after = ping_after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.greeting, "more_body": True})
        sending = asyncio.ensure_future(self._send_events(send))
        leaving = [
            asyncio.ensure_future(_disconnected(receive)),
            asyncio.ensure_future(self._stopping.wait()),
            asyncio.ensure_future(wait_until_revoked(scope)),
        ]
        try:
            await asyncio.wait([sending, *leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in leaving:
                task.cancel()
            if not sending.done():
                sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_events(self, send: Send) -> None:
        async for chunk in self._chunks():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})

    def _chunks(self) -> AsyncIterator[bytes]:
        raise NotImplementedError


class RunsChangedStream(ByteStream):
    """Sends an event when any run was started or has changed. It does not say which run."""

    def __init__(self, services: Services, *, ping_after: float = PING_AFTER_SECONDS) -> None:
        super().__init__(services.stopping, ping_after)
        self._runs = services.run_queries

    async def _chunks(self) -> AsyncIterator[bytes]:
        with self._runs.watch_all() as watch:
            while True:
                yield RUNS_CHANGED if await watch.changed(self._ping_after) else _PING
                await asyncio.sleep(_PAUSE_SECONDS)


class EventStream(ByteStream):
    """The events of `run_id` after `after`, up to the final one; with `step`, only those of that step."""

    def __init__(
        self,
        services: Services,
        run_id: RunId,
        after: int,
        *,
        step: str | None = None,
        ping_after: float = PING_AFTER_SECONDS,
    ) -> None:
        super().__init__(services.stopping, ping_after)
        self._services = services
        self._run_id = run_id
        self._after = after
        self._step = step

    async def _chunks(self) -> AsyncIterator[bytes]:
        runs, run_id, after = self._services.run_queries, self._run_id, self._after
        now = asyncio.get_running_loop().time
        ping_at = now() + self._ping_after
        with runs.watch(run_id) as watch:
            while True:
                is_final, after, events = await self._look(after)
                if events:
                    ping_at = now() + self._ping_after
                    yield b"".join(map(encode_event, events))
                elif is_final:
                    return
                else:
                    await watch.changed(min(_LOOK_AGAIN_SECONDS, max(ping_at - now(), 0)))
                    if now() >= ping_at:
                        ping_at = now() + self._ping_after
                        yield _PING

    async def _look(self, after: int) -> tuple[bool, int, list[EventRecord]]:
        """Whether these events are the last ones, and up to which number all events were read."""
        runs = self._services.run_queries
        try:
            # Read before the events: if the run is final now, the events read next are all of them.
            status, last = await runs.status(self._run_id)
            events, more = await read_within(
                lambda seen, limit: runs.events(self._run_id, after=seen, limit=limit, step=self._step),
                after,
                _BATCH,
                key=lambda event: event.seq,
                size_bytes=lambda event: len(event.data),
            )
        except Unavailable:
            # The stream waits with the work, and goes on when the store is back.
            return False, after, []
        # What other steps have done is not walked again with every look.
        seen = after if more else last
        return status in FINAL_RUN_STATUSES, max([after, seen, *(event.seq for event in events)]), events


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class AuditStream(ByteStream):
    """Entries of the audit log, one JSON object per line. An empty line shows that the connection is alive."""

    media_type = JSON_LINES
    greeting = b""

    def __init__(
        self,
        stopping: asyncio.Event,
        entries: AuditFollower,
        *,
        follow: bool,
        ping_after: float = PING_AFTER_SECONDS,
    ) -> None:
        super().__init__(stopping, ping_after)
        self._entries = entries
        self._follow = follow

    async def _chunks(self) -> AsyncIterator[bytes]:
        now = asyncio.get_running_loop().time
        ping_at = now() + self._ping_after
        while True:
            try:
                async for batch in self._entries.read():
                    ping_at = now() + self._ping_after
                    yield b"".join(encode(audit_entry(entry)) + b"\n" for entry in batch)
            except Unavailable:
                if not self._follow:
                    raise
                # The stream waits with the work, and goes on when the store is back.
            if not self._follow:
                return
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            if now() >= ping_at:
                ping_at = now() + self._ping_after
                yield b"\n"
