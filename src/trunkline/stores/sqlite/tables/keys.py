"""Keys of the API, as digests."""

from __future__ import annotations

import apsw

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.stores.base import ApiKey
from trunkline.stores.sqlite.database.statements import Row, execute, first, is_duplicate, rows

_COLUMNS = "id, name, role, digest, created_at, revoked_at"
_SELECT = f"SELECT {_COLUMNS} FROM api_keys"  # noqa: S608 - constants of this module
_INSERT = f"INSERT INTO api_keys({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
# Of two that are meant, the one of that name.
_REVOKE = f"""
    UPDATE api_keys SET revoked_at = ?2 WHERE id =
        (SELECT id FROM api_keys WHERE revoked_at IS NULL AND (name = ?1 OR id = ?1) ORDER BY name <> ?1 LIMIT 1)
    RETURNING {_COLUMNS}
"""  # noqa: S608 - as above


def insert_key(db: apsw.Connection, key: ApiKey) -> None:
    try:
        execute(db, _INSERT, (key.id, key.name, key.role, key.digest, key.created_at, key.revoked_at))
    except apsw.ConstraintError as exc:
        if not is_duplicate(exc):
            raise
        raise AlreadyExists(f"There is already a key named {key.name!r} in use.") from exc


def revoke_key(db: apsw.Connection, name_or_id: str, now: Instant) -> ApiKey | None:
    row = first(db, _REVOKE, (name_or_id, now))
    return None if row is None else _key(row)


def keys(db: apsw.Connection, *, limit: int, after: str | None) -> list[ApiKey]:
    page = rows(db, f"{_SELECT} WHERE id > ? ORDER BY id LIMIT ?", (after or "", limit))
    return [_key(row) for row in page]


def key(db: apsw.Connection, digest: bytes) -> ApiKey | None:
    row = first(db, f"{_SELECT} WHERE digest = ?", (digest,))
    return None if row is None else _key(row)


def _key(row: Row) -> ApiKey:
    key_id, name, role, digest, created_at, revoked_at = row
    return ApiKey(
        id=key_id, name=name, role=role, digest=digest, created_at=created_at, revoked_at=revoked_at
    )
