"""Keys of the API, as digests."""

from __future__ import annotations

import asyncpg

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.stores.base import ApiKey
from trunkline.stores.postgres.database.session import Row, Session
from trunkline.stores.postgres.database.text_encoding import LOWEST_UUID, as_uuid, restored

_COLUMNS = "id::text, name, role, digest, created_at, revoked_at"
_SELECT = f"SELECT {_COLUMNS} FROM api_keys"  # noqa: S608 - constants of this module
_INSERT = """
    INSERT INTO api_keys(id, name, role, digest, created_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6)
"""
# Of two that are meant, the one of that name.
_REVOKE = f"""
    UPDATE api_keys SET revoked_at = $3 WHERE revoked_at IS NULL AND id =
        (SELECT id FROM api_keys WHERE revoked_at IS NULL AND (name = $1 OR id = $2) ORDER BY name <> $1 LIMIT 1)
    RETURNING {_COLUMNS}
"""  # noqa: S608 - as above


async def insert_key(db: Session, key: ApiKey) -> None:
    try:
        await db.execute(_INSERT, key.id, key.name, key.role, key.digest, key.created_at, key.revoked_at)
    except asyncpg.UniqueViolationError as exc:
        raise AlreadyExists(f"There is already a key named {key.name!r} in use.") from exc


async def revoke_key(db: Session, name_or_id: str, now: Instant) -> ApiKey | None:
    row = await db.first(_REVOKE, name_or_id, as_uuid(name_or_id), now)
    return None if row is None else _key(row)


async def keys(db: Session, *, limit: int, after: str | None) -> list[ApiKey]:
    if after is not None and as_uuid(after) is None:
        return []
    page = await db.rows(f"{_SELECT} WHERE id > $1::uuid ORDER BY id LIMIT $2", after or LOWEST_UUID, limit)
    return [_key(row) for row in page]


async def key(db: Session, digest: bytes) -> ApiKey | None:
    row = await db.first(f"{_SELECT} WHERE digest = $1", digest)
    return None if row is None else _key(row)


def _key(row: Row) -> ApiKey:
    key_id, name, role, digest, created_at, revoked_at = row
    return ApiKey(
        id=key_id,
        name=restored(name),
        role=role,
        digest=digest,
        created_at=created_at,
        revoked_at=revoked_at,
    )
