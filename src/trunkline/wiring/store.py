"""Which store the settings mean."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from trunkline.clock import Clock
from trunkline.settings import Settings
from trunkline.stores.base import Store


@asynccontextmanager
async def open_store(
    settings: Settings, *, clock: Clock | None = None, upgrade: bool = False, beside: bool = False
) -> AsyncGenerator[Store]:
    """
    Opens it for this process.

    `upgrade`: PostgreSQL's schema is brought up to date first; SQLite's always is, since the file is one process's own.
    `beside`: also while another process owns the file, for a few small writes like those of keys.
    """
    # Each backend has a driver of its own, and a process needs one of them.
    if settings.uses_postgres:
        from trunkline.stores.postgres import open_postgres  # noqa: PLC0415

        async with open_postgres(settings.store_url or "", clock=clock, upgrade=upgrade) as postgres:
            yield postgres
    else:
        from trunkline.stores.sqlite import open_sqlite  # noqa: PLC0415

        async with open_sqlite(settings.sqlite_path, clock=clock, beside=beside) as sqlite:
            yield sqlite
