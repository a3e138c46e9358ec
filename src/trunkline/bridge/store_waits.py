"""Reading what a call needs while the store may be away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from trunkline.errors import Unavailable
from trunkline.telemetry import names

log = structlog.stdlib.get_logger()

_Read = TypeVar("_Read")

# Seconds; a store that is away is asked again at this pace.
_PAUSE = 0.5


async def retry_while_unavailable(read: Callable[[], Awaitable[_Read]]) -> _Read:
    """Waits while a store is away: the agent has no part in it, so nothing has failed."""
    while True:
        try:
            return await read()
        except Unavailable as exc:
            log.error(names.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
            await asyncio.sleep(_PAUSE)
