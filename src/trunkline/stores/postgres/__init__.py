"""
The store in PostgreSQL: one database for all processes, on asyncpg.

Where that driver is not installed, importing this package still works; opening a store says what is missing.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from trunkline.errors import ConfigurationError

if TYPE_CHECKING:
    from trunkline.clock import Clock
    from trunkline.stores.postgres.store import PostgresStore

__all__ = ["open_postgres", "require_driver"]


def open_postgres(
    url: str, *, clock: Clock | None = None, upgrade: bool = False
) -> AbstractAsyncContextManager[PostgresStore]:
    """
    Connects to the database at `url`, whose schema must be the one of this program.

    `upgrade` brings the schema up to date first. Without a `clock` the database's own decides.
    """
    require_driver()
    from trunkline.stores.postgres.store import opened  # noqa: PLC0415 - needs the driver

    return opened(url, clock=clock, upgrade=upgrade)


def require_driver(missing: str = "The store is PostgreSQL, but asyncpg is not installed.") -> None:
    try:
        import asyncpg  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport] - only to see whether it is there
    except ModuleNotFoundError as exc:
        raise ConfigurationError(
            missing,
            fix='Install it: pip install "trunkline[postgres]".',
        ) from exc
