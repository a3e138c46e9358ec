"""The store in one SQLite file: WAL, `synchronous=FULL`, one writer, one process."""

from trunkline.stores.sqlite.store import SqliteStore, open_sqlite

__all__ = ["SqliteStore", "open_sqlite"]
