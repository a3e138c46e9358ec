"""
Brings a PostgreSQL database to the schema that this program was written for, and back.

The statements come from `stores.migrations`; they run here, in one transaction, under a lock that keeps a second
upgrade waiting. Other processes may go on meanwhile: a migration only adds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg

from trunkline.errors import ConfigurationError, WrongSchema
from trunkline.stores.migrations import BASE, HEAD, REVISIONS, Direction, render_apart
from trunkline.stores.postgres.connection import connect
from trunkline.stores.postgres.driver import Session

# The number of our lock, known to nobody else by chance: "trunkline" as eight bytes or so.
_LOCK = 0x7472756E6B6C696E
# To change tables takes as long as it takes, but nobody else is kept waiting for it for long.
_PATIENT = {"statement_timeout": "0", "lock_timeout": "30s", "idle_in_transaction_session_timeout": "60s"}


async def current_revision(db: Session) -> str | None:
    """The schema's revision; None for a database that has none yet."""
    row = await db.first("SELECT to_regclass('alembic_version') IS NOT NULL")
    if row is None or not row[0]:
        return None
    row = await db.first("SELECT version_num FROM alembic_version")
    return None if row is None else str(row[0])


def check_revision(revision: str | None, place: str) -> None:
    """Raises `WrongSchema` unless the revision is the one that this program was written for."""
    if revision == HEAD:
        return
    if revision is None:
        raise WrongSchema(f"The database at {place} has no tables of Trunkline yet.")
    _check_known(revision, place)
    raise WrongSchema(
        f"The database at {place} is at schema revision {revision}; this version of Trunkline needs {HEAD}.",
    )


def _check_known(revision: str | None, place: str) -> None:
    if revision is not None and revision not in REVISIONS:
        raise WrongSchema(
            f"The database at {place} is at schema revision {revision}, which this version of Trunkline does not know"
            f" (it knows up to {HEAD}).",
            fix="Install the newer version of Trunkline that wrote it.",
        )


async def schema_revision(url: str) -> str | None:
    async with _patient(url) as db:
        return await current_revision(db)


async def check_schema(url: str) -> None:
    async with _patient(url) as db:
        check_revision(await current_revision(db), db.place)


async def upgrade(url: str) -> None:
    """Raises `WrongSchema` when a newer program has written the database."""
    async with _patient(url) as db:
        while (revision := await current_revision(db)) != HEAD:
            _check_known(revision, db.place)
            await _change(db, "upgrade", revision, HEAD)


async def downgrade(url: str, to: str) -> None:
    """What only the newer schema can hold is lost. A database at `to` or below stays as it is."""
    if to != BASE and to not in REVISIONS:
        raise ConfigurationError(
            f"There is no revision {to}.", fix=f"Choose one of {BASE}, {', '.join(REVISIONS)}."
        )
    async with _patient(url) as db:
        while (revision := await current_revision(db)) is not None and (to == BASE or to < revision):
            _check_known(revision, db.place)
            await _change(db, "downgrade", revision, to)


async def _change(db: Session, direction: Direction, start: str | None, to: str) -> None:
    """Nothing happens if somebody else has changed the schema first."""
    script = await asyncio.to_thread(render_apart, direction, "postgresql", start, to)
    await db.command("BEGIN")
    try:
        await db.rows("SELECT pg_advisory_xact_lock($1)", _LOCK)
        if await current_revision(db) == start:
            await _run(db, script)
        await db.command("COMMIT")
    except BaseException:
        # The server rolls back.
        db.terminate()
        raise


async def _run(db: Session, script: str) -> None:
    try:
        await db.command(script)
    except asyncpg.SyntaxOrAccessError as exc:
        raise ConfigurationError(
            f"The schema of the database at {db.place} could not be changed: {exc}",
            fix="It may hold tables of another program: choose another database in TRUNKLINE_STORE.",
        ) from exc


@asynccontextmanager
async def _patient(url: str) -> AsyncGenerator[Session]:
    db = await connect(url, _PATIENT)
    try:
        yield db
    finally:
        await db.close()
