"""The stream of changes to lists of runs, as a client reads it."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import aiohttp

from trunkline.testing import RunningSystem

CONNECTED = ": hello"
RUNS_CHANGED = "event: runs_changed"


async def change_notifications(system: RunningSystem) -> AsyncGenerator[str]:
    """Every line but those of the events' data; the first is `CONNECTED`."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{system.url}/api/v1/runs/changes") as response,
    ):
        assert (response.status, response.content_type) == (200, "text/event-stream")
        async for line in response.content:
            if line.startswith((b":", b"event")):
                yield line.decode().strip()
