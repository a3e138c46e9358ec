"""Named secrets, as they were sealed."""

from __future__ import annotations

import apsw

from trunkline.clock import Instant
from trunkline.stores.port.credentials import Secret
from trunkline.stores.sqlite.database.statements import Row, execute, first, rows

_COLUMNS = "name, sealed, version, created_at, updated_at"
_SELECT = f"SELECT {_COLUMNS} FROM secrets"  # noqa: S608 - constants of this module
_SET = f"""
    INSERT INTO secrets({_COLUMNS}) VALUES (?1, ?2, 1, ?3, ?3)
    ON CONFLICT (name) DO UPDATE SET sealed = ?2, version = version + 1, updated_at = ?3
    RETURNING {_COLUMNS}
"""  # noqa: S608 - as above


def set_secret(db: apsw.Connection, name: str, sealed: bytes, now: Instant) -> Secret:
    (row,) = rows(db, _SET, (name, sealed, now))
    return _secret(row)


def remove_secret(db: apsw.Connection, name: str) -> bool:
    return execute(db, "DELETE FROM secrets WHERE name = ?", (name,)) > 0


def secrets(db: apsw.Connection, *, limit: int, after: str | None) -> list[Secret]:
    page = rows(db, f"{_SELECT} WHERE name > ? ORDER BY name LIMIT ?", (after or "", limit))
    return [_secret(row) for row in page]


def secret(db: apsw.Connection, name: str) -> Secret | None:
    row = first(db, f"{_SELECT} WHERE name = ?", (name,))
    return None if row is None else _secret(row)


def _secret(row: Row) -> Secret:
    name, sealed, version, created_at, updated_at = row
    return Secret(name=name, sealed=sealed, version=version, created_at=created_at, updated_at=updated_at)
