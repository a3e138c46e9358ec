"""Keys of the API as digests, and named secrets as they were sealed."""

from __future__ import annotations

from collections.abc import Mapping

import apsw

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.stores.port.keys_and_secrets import ApiKey, Secret
from trunkline.stores.rows.operations import api_key, api_key_values, secret_record
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import execute, first, is_duplicate, rows

_KEY_COLUMNS = "id, name, role, digest, created_at, revoked_at, expires_at, last_used_at, publications"
_KEYS = f"SELECT {_KEY_COLUMNS} FROM api_keys"  # noqa: S608 - constants of this module
_INSERT_KEY = f"INSERT INTO api_keys({_KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
# If one has the text as its name and another one as its id, the one with that name.
_REVOKE_KEY = f"""
    UPDATE api_keys SET revoked_at = ?2 WHERE id =
        (SELECT id FROM api_keys WHERE revoked_at IS NULL AND (name = ?1 OR id = ?1) ORDER BY name <> ?1 LIMIT 1)
    RETURNING {_KEY_COLUMNS}
"""  # noqa: S608 - as above
_NOTE_USE = """
    UPDATE api_keys SET last_used_at = ?2 WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)
"""
_SEALED_COLUMNS = "name, sealed, version, created_at, updated_at"
_SECRETS = f"SELECT {_SEALED_COLUMNS} FROM secrets"  # noqa: S608 - as above
_PUT = f"""
    INSERT INTO secrets({_SEALED_COLUMNS}) VALUES (?1, ?2, 1, ?3, ?3)
    ON CONFLICT (name) DO UPDATE SET sealed = ?2, version = version + 1, updated_at = ?3
    RETURNING {_SEALED_COLUMNS}
"""  # noqa: S608 - as above
_RESEAL = "UPDATE secrets SET sealed = ? WHERE name = ? AND sealed = ?"


class SqliteKeyReads(SqliteReads):
    async def get(self, digest: bytes) -> ApiKey | None:
        row = first(self._db, f"{_KEYS} WHERE digest = ?", (digest,))
        return None if row is None else api_key(row)

    async def by_id(self, key_id: str) -> ApiKey | None:
        row = first(self._db, f"{_KEYS} WHERE id = ?", (key_id,))
        return None if row is None else api_key(row)

    async def page(self, *, limit: int, after: str | None = None) -> list[ApiKey]:
        page = rows(self._db, f"{_KEYS} WHERE id > ? ORDER BY id LIMIT ?", (after or "", limit))
        return [api_key(row) for row in page]


class SqliteKeyWrites(SqliteWrites):
    __slots__ = ()

    async def insert(self, key: ApiKey) -> None:
        try:
            execute(self._db, _INSERT_KEY, api_key_values(key))
        except apsw.ConstraintError as exc:
            if not is_duplicate(exc):
                raise
            raise AlreadyExists(f"An active API key named {key.name!r} already exists.") from exc

    async def revoke(self, name_or_id: str) -> ApiKey | None:
        row = first(self._db, _REVOKE_KEY, (name_or_id, self._now))
        return None if row is None else api_key(row)

    async def note_uses(self, uses: Mapping[str, Instant]) -> None:
        for key_id, at in uses.items():
            execute(self._db, _NOTE_USE, (key_id, at))


class SqliteSecretReads(SqliteReads):
    async def get(self, name: str) -> Secret | None:
        row = first(self._db, f"{_SECRETS} WHERE name = ?", (name,))
        return None if row is None else secret_record(row)

    async def page(self, *, limit: int, after: str | None = None) -> list[Secret]:
        page = rows(self._db, f"{_SECRETS} WHERE name > ? ORDER BY name LIMIT ?", (after or "", limit))
        return [secret_record(row) for row in page]


class SqliteSecretWrites(SqliteWrites):
    __slots__ = ()

    async def put(self, name: str, sealed: bytes) -> Secret:
        (row,) = rows(self._db, _PUT, (name, sealed, self._now))
        return secret_record(row)

    async def reseal(self, name: str, sealed: bytes, *, expected: bytes) -> bool:
        return execute(self._db, _RESEAL, (sealed, name, expected)) == 1

    async def delete(self, name: str) -> bool:
        return execute(self._db, "DELETE FROM secrets WHERE name = ?", (name,)) > 0
