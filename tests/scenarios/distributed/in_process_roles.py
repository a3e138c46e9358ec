"""Processes of the distributed mode inside the test's own: each with its roles, its connections and its door."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp

from trunkline.api.server import base_url, listen, serving
from trunkline.clock import Clock
from trunkline.settings import load_settings
from trunkline.testing import RunningSystem
from trunkline.wiring import Interceptors, Role, open_system


@asynccontextmanager
async def serving_roles(
    *roles: Role, clock: Clock | None = None, interceptors: Interceptors | None = None, **settings: object
) -> AsyncGenerator[RunningSystem]:
    """As `trunkline serve --role …`; the backends are those of the environment. Ready when the block begins."""
    flags = {"host": "127.0.0.1", "port": 0, "stop_timeout": "1s", **settings}
    failure: Exception | None = None
    with listen("127.0.0.1", 0) as listener:
        async with (
            open_system(
                load_settings(flags), roles, alone=False, clock=clock, interceptors=interceptors
            ) as system,
            serving(system.app, listener),
            aiohttp.ClientSession() as session,
        ):
            try:
                yield RunningSystem(base_url(listener), session, system)
            except Exception as exc:  # noqa: BLE001 - it goes on below
                # Inside it would be wrapped by every group of tasks of every process.
                failure = exc
    if failure is not None:
        raise failure
