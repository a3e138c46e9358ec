"""
Brings a SQLite file to the schema that this program was written for, and back.

The statements come from `stores.migrations`; they run here, in one transaction, through the store's driver.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from trunkline.errors import ConfigurationError
from trunkline.stores.migrations import (
    BASE,
    HEAD,
    REVISIONS,
    downgrade_statements,
    holds_newer_data,
    upgrade_statements,
)
from trunkline.stores.sqlite.database.connection import (
    connect,
    make_file,
    make_folder,
    owned,
    translated_errors,
)
from trunkline.stores.sqlite.database.statements import execute, first


def current_revision(connection: apsw.Connection) -> str | None:
    """The schema's revision; None for a database that has none yet."""
    table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'"
    if first(connection, table) is None:
        return None
    row = first(connection, "SELECT version_num FROM alembic_version")
    return None if row is None else str(row[0])


def is_up_to_date(path: Path) -> bool:
    """False for a file that is not there."""
    return file_revision(path) == HEAD


def file_revision(path: Path) -> str | None:
    """As `current_revision`; None also for a file that is not there."""
    if not path.exists():
        return None
    with translated_errors(), closing(connect(path)) as connection:
        return current_revision(connection)


def upgrade_file(path: Path) -> None:
    """Makes the file if there is none. Raises `DataInUse` while another process has it."""
    make_folder(path.parent)
    with owned(path):
        make_file(path)
        with translated_errors(), closing(connect(path)) as connection:
            upgrade(connection)


def downgrade_file(path: Path, to: str) -> None:
    """As `downgrade`; a file that is not there is at no revision."""
    if path.exists():
        with owned(path), translated_errors(), closing(connect(path)) as connection:
            downgrade(connection, to)


def upgrade(connection: apsw.Connection) -> None:
    """Raises `ConfigurationError` when a newer program has written the database."""
    if _known_revision(connection) == HEAD:
        return
    with _transaction(connection):
        while (revision := _known_revision(connection)) != HEAD:
            _run(connection, upgrade_statements("sqlite", revision))


def downgrade(connection: apsw.Connection, to: str = BASE) -> None:
    """What only the newer schema can hold is lost. A database at `to` or below stays as it is."""
    if to != BASE and to not in REVISIONS:
        raise ConfigurationError(
            f"Unknown schema revision: {to}.", fix=f"Use one of {BASE}, {', '.join(REVISIONS)}."
        )
    with _transaction(connection):
        revision = _known_revision(connection)
        if revision is not None and (to == BASE or to < revision):
            _run(connection, downgrade_statements("sqlite", revision, to))


def _known_revision(connection: apsw.Connection) -> str | None:
    revision = current_revision(connection)
    if revision is not None and revision not in REVISIONS:
        raise ConfigurationError(
            f"The database is at schema revision {revision}, which this version of Trunkline does not "
            f"support (it supports up to {HEAD}).",
            fix="Start the newer version of Trunkline that created it, or choose another folder with --data.",
        )
    return revision


def _run(connection: apsw.Connection, script: str) -> None:
    try:
        execute(connection, script)
    except apsw.ConstraintError as exc:
        raise holds_newer_data(str(exc)) from exc
    except apsw.SQLError as exc:
        raise ConfigurationError(
            f"Cannot change the database schema: {exc}",
            fix="The database may contain another program's tables. If so, choose another folder with "
            "--data.",
        ) from exc


@contextmanager
def _transaction(connection: apsw.Connection) -> Generator[None]:
    execute(connection, "BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        execute(connection, "ROLLBACK")
        raise
    execute(connection, "COMMIT")
