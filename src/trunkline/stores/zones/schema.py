"""The tables of a zone's files, each with the version that it says it has."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import apsw

from trunkline.errors import ConfigurationError
from trunkline.stores.sqlite.database.statements import execute, first


class FileSchema(NamedTuple):
    version: int
    script: str


def bring_to(schema: FileSchema, db: apsw.Connection, path: Path) -> None:
    """Makes the tables of a new file; refuses one of a newer program, or of another one."""
    if _version(db) == 0 and first(db, "SELECT 1 FROM sqlite_master LIMIT 1") is None:
        # All of it or nothing: a file with half a schema could never be opened again.
        with db:
            execute(db, schema.script)
            execute(db, f"PRAGMA user_version = {schema.version}")
    check(schema, db, path)


def check(schema: FileSchema, db: apsw.Connection, path: Path) -> None:
    version = _version(db)
    if version > schema.version:
        raise ConfigurationError(
            f"{path} has version {version}, but this program supports versions up to {schema.version}.",
            fix="Start the newer version of Trunkline that created it, or choose another folder with --data.",
        )
    if version < schema.version:
        raise ConfigurationError(
            f"{path} contains another program's tables.", fix="Choose another folder with --data."
        )


def _version(db: apsw.Connection) -> int:
    row = first(db, "PRAGMA user_version")
    return 0 if row is None else int(row[0])
