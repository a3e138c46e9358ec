"""
The store that the settings choose, and the keys of what is encrypted in it. An exported store is read-only.

Commands such as `trunkline keys` need nothing else, so this imports nothing that calls agents or serves the API.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from trunkline.clock import Clock
from trunkline.services.security.vault import load_keys
from trunkline.settings import Settings
from trunkline.stores.base import Store

if TYPE_CHECKING:
    from trunkline.stores.postgres.litecone_database import LiteconeRows


from contextlib import AbstractAsyncContextManager
from typing import cast

from trunkline.clock import rfc3339
from trunkline.errors import Conflict
from trunkline.stores.base import ExportRecord, Transaction


@asynccontextmanager
async def open_store(
    settings: Settings, *, clock: Clock | None = None, upgrade: bool = False, allow_in_use: bool = False
) -> AsyncGenerator[Store]:
    """
    Opens it for this process.

    `upgrade`: PostgreSQL's schema is brought up to date first; SQLite's always is, since the file is one process's own.
    `allow_in_use`: also while another process owns the file, for a few small writes like those of keys.
    """
    # Imported here, because each backend has a driver of its own, an extra perhaps, and a process needs one of them.
    if settings.uses_postgres:
        from trunkline.stores.postgres import open_postgres  # noqa: PLC0415

        async with open_postgres(settings.store_url or "", clock=clock, upgrade=upgrade) as postgres:
            yield postgres
    else:
        from trunkline.stores.sqlite import open_sqlite  # noqa: PLC0415

        async with open_sqlite(settings.sqlite_path, clock=clock, allow_in_use=allow_in_use) as sqlite:
            yield sqlite


async def read_litecone_database(url: str) -> LiteconeRows:
    """The definitions in a database of litecone; nothing is changed there."""
    from trunkline.stores.postgres import require_driver  # noqa: PLC0415 - see above

    require_driver("Reading litecone's database needs asyncpg, which is not installed.")
    from trunkline.stores.postgres.litecone_database import read_litecone  # noqa: PLC0415 - needs the driver

    return await read_litecone(url)


def vault_keys(settings: Settings, *, make: bool = True) -> tuple[bytes, ...]:
    """The first one encrypts. `make`: if there is no key, create the key file. Raises `ConfigurationError`."""
    configured = None if settings.secret_key is None else settings.secret_key.get_secret_value()
    return load_keys(configured, settings.key_file, make=make)


class StoreExported(Conflict):
    """What this store held has been exported."""

    fix = "Use the system that imported the data. This one is read-only."


def _refuse(export: ExportRecord) -> StoreExported:
    return StoreExported(f"This store was exported at {rfc3339(export.at)} and is now read-only.")


class ExportedStore:
    """Reads are the store's own."""

    def __init__(self, store: Store, export: ExportRecord) -> None:
        self._store = store
        self._export = export

    def transaction(self, *, durable: bool = True) -> AbstractAsyncContextManager[Transaction]:
        del durable
        raise _refuse(self._export)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


async def read_only_if_exported(store: Store) -> Store:
    export = await store.transfer.export_record()
    # All but one of its methods are found by `__getattr__`, where the type checker cannot see them.
    return store if export is None else cast("Store", ExportedStore(store, export))
