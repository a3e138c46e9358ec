"""Saved JSON Schemas."""

from __future__ import annotations

from collections.abc import Collection

import apsw

from trunkline.jsontypes import encode
from trunkline.stores.port.workflows import SavedSchema
from trunkline.stores.rows.runs import saved_schema
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import execute, first, rows

_COLUMNS = "name, schema, version, created_at, updated_at"
_SCHEMAS = f"SELECT {_COLUMNS} FROM schemas"  # noqa: S608 - constants of this module
_SOME = f"{_SCHEMAS} WHERE name IN (SELECT value FROM json_each(?))"  # noqa: S608 - as above
_PUT = f"""
    INSERT INTO schemas({_COLUMNS}) VALUES (?1, ?2, 1, ?3, ?3)
    ON CONFLICT (name) DO UPDATE SET schema = ?2, version = version + 1, updated_at = ?3
    RETURNING {_COLUMNS}
"""  # noqa: S608 - as above


class SqliteSchemaReads(SqliteReads):
    async def get(self, name: str) -> SavedSchema | None:
        return _get(self._db, name)

    async def some(self, names: Collection[str]) -> list[SavedSchema]:
        wanted = encode([*names]).decode()
        found = rows(self._db, _SOME, (wanted,))
        return [saved_schema(row) for row in found]

    async def page(self, *, limit: int, after: str | None = None) -> list[SavedSchema]:
        page = rows(self._db, f"{_SCHEMAS} WHERE name > ? ORDER BY name LIMIT ?", (after or "", limit))
        return [saved_schema(row) for row in page]


class SqliteSchemaWrites(SqliteWrites):
    __slots__ = ()

    async def get(self, name: str) -> SavedSchema | None:
        return _get(self._db, name)

    async def put(self, name: str, schema: bytes) -> SavedSchema:
        (row,) = rows(self._db, _PUT, (name, schema, self._now))
        return saved_schema(row)

    async def delete(self, name: str) -> bool:
        return execute(self._db, "DELETE FROM schemas WHERE name = ?", (name,)) > 0


def _get(db: apsw.Connection, name: str) -> SavedSchema | None:
    row = first(db, f"{_SCHEMAS} WHERE name = ?", (name,))
    return None if row is None else saved_schema(row)
