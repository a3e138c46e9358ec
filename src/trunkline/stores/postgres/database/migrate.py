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

from trunkline.errors import ConfigurationError
from trunkline.stores.migrations import (
    BASE,
    HEAD,
    REVISIONS,
    SchemaState,
    downgrade_statements,
    holds_newer_data,
    upgrade_statements,
)
from trunkline.stores.postgres.database.connection import connect
from trunkline.stores.postgres.database.session import Session

# The number of our advisory lock, unlikely to collide with others: derived from "trunkline".
_LOCK = 0x7472756E6B6C696E
# Changing tables may take any time, but must not block other sessions for long.
_PATIENT = {"statement_timeout": "0", "lock_timeout": "30s", "idle_in_transaction_session_timeout": "60s"}


async def current_revision(db: Session) -> str | None:
    """The schema's revision; None for a database that has none yet."""
    row = await db.first("SELECT to_regclass('alembic_version') IS NOT NULL")
    if row is None or not row[0]:
        return None
    row = await db.first("SELECT version_num FROM alembic_version")
    return None if row is None else str(row[0])


async def schema_state(url: str) -> SchemaState:
    async with _patient(url) as db:
        return await state_of(db)


async def state_of(db: Session) -> SchemaState:
    return SchemaState(place=db.place, revision=await current_revision(db))


async def upgrade(url: str) -> None:
    """Raises `WrongSchema` when a newer program has written the database."""
    async with _patient(url) as db:
        while (state := await state_of(db)).revision != HEAD:
            state.check_known()
            script = await asyncio.to_thread(upgrade_statements, "postgresql", state.revision)
            await _change(db, state.revision, script)


async def downgrade(url: str, to: str) -> None:
    """What only the newer schema can hold is lost. A database at `to` or below stays as it is."""
    if to != BASE and to not in REVISIONS:
        raise ConfigurationError(
            f"Unknown schema revision: {to}.", fix=f"Use one of {BASE}, {', '.join(REVISIONS)}."
        )
    async with _patient(url) as db:
        while (state := await state_of(db)).revision is not None and (to == BASE or to < state.revision):
            state.check_known()
            script = await asyncio.to_thread(downgrade_statements, "postgresql", state.revision, to)
            await _change(db, state.revision, script)


async def _change(db: Session, start: str | None, script: str) -> None:
    """Nothing happens if another process has changed the schema first."""
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
    except asyncpg.CheckViolationError as exc:
        raise holds_newer_data(str(exc)) from exc
    except asyncpg.SyntaxOrAccessError as exc:
        raise ConfigurationError(
            f"Cannot change the schema of the database at {db.place}: {exc}",
            fix="The database may contain another program's tables. If so, choose another database in "
            "TRUNKLINE_STORE.",
        ) from exc


@asynccontextmanager
async def _patient(url: str) -> AsyncGenerator[Session]:
    db = await connect(url, _PATIENT, answer_seconds=None)
    try:
        yield db
    finally:
        await db.close()
