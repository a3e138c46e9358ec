"""Cuts every connection to a database, and waits until the store has noticed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from deploy.local.postgres import PostgresServer


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def disconnect_all(postgres: PostgresServer, database: str) -> None:
    condition = f"datname = '{database}' AND pid <> pg_backend_pid()"
    postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {condition}")  # noqa: S608 - ours
