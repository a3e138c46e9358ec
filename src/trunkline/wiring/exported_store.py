"""A store whose contents were exported to another one: everything can be read, and no change is accepted."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import cast

from trunkline.clock import rfc3339
from trunkline.errors import Conflict
from trunkline.stores.base import ExportRecord, Store, Transaction


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
