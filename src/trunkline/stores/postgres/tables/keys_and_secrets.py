"""Keys of the API as digests, and named secrets as they were sealed."""

from __future__ import annotations

from collections.abc import Mapping

import asyncpg

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.stores.port.keys_and_secrets import ApiKey, Secret
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.text_encoding import LOWEST_UUID, as_uuid, restored_row
from trunkline.stores.rows.operations import api_key, api_key_values, secret_record

_KEY_COLUMNS = "id::text, name, role, digest, created_at, revoked_at, expires_at, last_used_at, publications"
_KEYS = f"SELECT {_KEY_COLUMNS} FROM api_keys"  # noqa: S608 - constants of this module
_INSERT_KEY = """
    INSERT INTO api_keys(id, name, role, digest, created_at, revoked_at, expires_at, last_used_at, publications)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
# If one has the text as its name and another one as its id, the one with that name.
_REVOKE_KEY = f"""
    UPDATE api_keys SET revoked_at = $3 WHERE revoked_at IS NULL AND id =
        (SELECT id FROM api_keys WHERE revoked_at IS NULL AND (name = $1 OR id = $2) ORDER BY name <> $1 LIMIT 1)
    RETURNING {_KEY_COLUMNS}
"""  # noqa: S608 - as above
_NOTE_USE = """
    UPDATE api_keys SET last_used_at = $2 WHERE id = $1::uuid AND (last_used_at IS NULL OR last_used_at < $2)
"""
_SEALED_COLUMNS = "name, sealed, version, created_at, updated_at"
_SECRETS = f"SELECT {_SEALED_COLUMNS} FROM secrets"  # noqa: S608 - as above
_PUT = """
    INSERT INTO secrets(name, sealed, version, created_at, updated_at) VALUES ($1, $2, 1, $3, $3)
    ON CONFLICT (name) DO UPDATE SET sealed = $2, version = secrets.version + 1, updated_at = $3
    RETURNING name, sealed, version, created_at, updated_at
"""
_RESEAL = "UPDATE secrets SET sealed = $1 WHERE name = $2 AND sealed = $3"


class PostgresKeyReads(PostgresReads):
    async def get(self, digest: bytes) -> ApiKey | None:
        row = await self._first(f"{_KEYS} WHERE digest = $1", digest)
        return None if row is None else api_key(restored_row(row))

    async def by_id(self, key_id: str) -> ApiKey | None:
        found = as_uuid(key_id)
        row = None if found is None else await self._first(f"{_KEYS} WHERE id = $1", found)
        return None if row is None else api_key(restored_row(row))

    async def page(self, *, limit: int, after: str | None = None) -> list[ApiKey]:
        if after is not None and as_uuid(after) is None:
            return []
        page = await self._rows(
            f"{_KEYS} WHERE id > $1::uuid ORDER BY id LIMIT $2", after or LOWEST_UUID, limit
        )
        return [api_key(restored_row(row)) for row in page]


class PostgresKeyWrites(PostgresWrites):
    __slots__ = ()

    async def insert(self, key: ApiKey) -> None:
        try:
            await self._db.execute(_INSERT_KEY, *api_key_values(key))
        except asyncpg.UniqueViolationError as exc:
            raise AlreadyExists(f"An active API key named {key.name!r} already exists.") from exc

    async def revoke(self, name_or_id: str) -> ApiKey | None:
        row = await self._db.first(_REVOKE_KEY, name_or_id, as_uuid(name_or_id), self._now)
        return None if row is None else api_key(restored_row(row))

    async def note_uses(self, uses: Mapping[str, Instant]) -> None:
        # In one order, so that two processes do not wait for each other.
        for key_id, at in sorted(uses.items()):
            await self._db.execute(_NOTE_USE, key_id, at)


class PostgresSecretReads(PostgresReads):
    async def get(self, name: str) -> Secret | None:
        row = await self._first(f"{_SECRETS} WHERE name = $1", name)
        return None if row is None else secret_record(restored_row(row))

    async def page(self, *, limit: int, after: str | None = None) -> list[Secret]:
        page = await self._rows(f"{_SECRETS} WHERE name > $1 ORDER BY name LIMIT $2", after or "", limit)
        return [secret_record(restored_row(row)) for row in page]


class PostgresSecretWrites(PostgresWrites):
    __slots__ = ()

    async def put(self, name: str, sealed: bytes) -> Secret:
        (row,) = await self._db.rows(_PUT, name, sealed, self._now)
        return secret_record(restored_row(row))

    async def reseal(self, name: str, sealed: bytes, *, expected: bytes) -> bool:
        return await self._db.execute(_RESEAL, sealed, name, expected) == 1

    async def delete(self, name: str) -> bool:
        return await self._db.execute("DELETE FROM secrets WHERE name = $1", name) > 0
