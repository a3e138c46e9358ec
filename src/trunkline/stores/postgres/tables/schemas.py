"""Saved JSON Schemas."""

from __future__ import annotations

from collections.abc import Collection

from trunkline.stores.port.workflows import SavedSchema
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.rows.runs import saved_schema

_COLUMNS = "name, schema, version, created_at, updated_at"
_SCHEMAS = f"SELECT {_COLUMNS} FROM schemas"  # noqa: S608 - constants of this module
_ONE = f"{_SCHEMAS} WHERE name = $1"
_PUT = f"""
    INSERT INTO schemas({_COLUMNS}) VALUES ($1, $2, 1, $3, $3)
    ON CONFLICT (name) DO UPDATE SET schema = $2, version = schemas.version + 1, updated_at = $3
    RETURNING {_COLUMNS}
"""  # noqa: S608 - as above


class PostgresSchemaReads(PostgresReads):
    async def get(self, name: str) -> SavedSchema | None:
        row = await self._first(_ONE, name)
        return None if row is None else saved_schema(row)

    async def some(self, names: Collection[str]) -> list[SavedSchema]:
        found = await self._rows(f"{_SCHEMAS} WHERE name = ANY($1::text[])", [*names])
        return [saved_schema(row) for row in found]

    async def page(self, *, limit: int, after: str | None = None) -> list[SavedSchema]:
        page = await self._rows(f"{_SCHEMAS} WHERE name > $1 ORDER BY name LIMIT $2", after or "", limit)
        return [saved_schema(row) for row in page]


class PostgresSchemaWrites(PostgresWrites):
    __slots__ = ()

    async def get(self, name: str) -> SavedSchema | None:
        row = await self._db.first(_ONE, name)
        return None if row is None else saved_schema(row)

    async def put(self, name: str, schema: bytes) -> SavedSchema:
        (row,) = await self._db.rows(_PUT, name, schema, self._now)
        return saved_schema(row)

    async def delete(self, name: str) -> bool:
        return await self._db.execute("DELETE FROM schemas WHERE name = $1", name) == 1
