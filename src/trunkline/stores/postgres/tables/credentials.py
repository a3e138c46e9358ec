"""Named secrets, as they were sealed."""

from __future__ import annotations

from trunkline.clock import Instant
from trunkline.stores.port.credentials import Secret
from trunkline.stores.postgres.database.session import Row, Session
from trunkline.stores.postgres.database.text_encoding import restored

_COLUMNS = "name, sealed, version, created_at, updated_at"
_SELECT = f"SELECT {_COLUMNS} FROM secrets"  # noqa: S608 - constants of this module
_SET = """
    INSERT INTO secrets(name, sealed, version, created_at, updated_at) VALUES ($1, $2, 1, $3, $3)
    ON CONFLICT (name) DO UPDATE SET sealed = $2, version = secrets.version + 1, updated_at = $3
    RETURNING name, sealed, version, created_at, updated_at
"""


async def set_secret(db: Session, name: str, sealed: bytes, now: Instant) -> Secret:
    (row,) = await db.rows(_SET, name, sealed, now)
    return _secret(row)


async def remove_secret(db: Session, name: str) -> bool:
    return await db.execute("DELETE FROM secrets WHERE name = $1", name) > 0


async def secrets(db: Session, *, limit: int, after: str | None) -> list[Secret]:
    page = await db.rows(f"{_SELECT} WHERE name > $1 ORDER BY name LIMIT $2", after or "", limit)
    return [_secret(row) for row in page]


async def secret(db: Session, name: str) -> Secret | None:
    row = await db.first(f"{_SELECT} WHERE name = $1", name)
    return None if row is None else _secret(row)


def _secret(row: Row) -> Secret:
    name, sealed, version, created_at, updated_at = row
    return Secret(
        name=restored(name), sealed=sealed, version=version, created_at=created_at, updated_at=updated_at
    )
