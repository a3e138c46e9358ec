"""
The schema of a store, whichever it is: which revision it has, which one this program needs, and the way between.

For a PostgreSQL database, and for a SQLite file that no other process has open. PostgreSQL's modules are imported only
for its addresses, since its driver is optional.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from trunkline.stores.migrations import SchemaState
from trunkline.stores.sqlite.database.migrate import downgrade_file, file_revision, upgrade_file

_SQLITE = "sqlite:///"


async def schema_state(url: str) -> SchemaState:
    if _is_sqlite(url):
        path = _path(url)
        return SchemaState(place=str(path), revision=await asyncio.to_thread(file_revision, path))
    from trunkline.stores.postgres.database import migrate  # noqa: PLC0415 - see above

    return await migrate.schema_state(url)


async def upgrade_schema(url: str) -> SchemaState:
    """How it is afterwards. Raises `WrongSchema` when a newer program has written the database."""
    if _is_sqlite(url):
        await asyncio.to_thread(upgrade_file, _path(url))
    else:
        from trunkline.stores.postgres.database import migrate  # noqa: PLC0415 - see above

        await migrate.upgrade(url)
    return await schema_state(url)


async def downgrade_schema(url: str, to: str) -> SchemaState:
    """
    How it is afterwards: what only the newer schema can hold is lost.

    A database at `to` or below stays as it is.
    """
    if _is_sqlite(url):
        await asyncio.to_thread(downgrade_file, _path(url), to)
    else:
        from trunkline.stores.postgres.database import migrate  # noqa: PLC0415 - see above

        await migrate.downgrade(url, to)
    return await schema_state(url)


def _is_sqlite(url: str) -> bool:
    """Where it is not, PostgreSQL's driver must be there."""
    if url.startswith(_SQLITE):
        return True
    from trunkline.stores.postgres import require_driver  # noqa: PLC0415 - see above

    require_driver()
    return False


def _path(url: str) -> Path:
    return Path(url.removeprefix(_SQLITE))
