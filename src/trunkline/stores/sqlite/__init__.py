"""
The store in one SQLite file: WAL, `synchronous=FULL`, one writer, one process.

The file of a zone needs only `database/`. So the store is imported when one of its names is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.stores.sqlite.store import SqliteStore, open_sqlite

__all__ = ["SqliteStore", "open_sqlite"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("trunkline.stores.sqlite.store"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
