"""Workflows in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.stores.base import LastRun, WorkflowVersion
from trunkline.stores.postgres.database.session import Row, Session, Value
from trunkline.stores.postgres.database.text_encoding import as_uuid, restored

_SELECT = """
    SELECT w.id::text, w.name, v.version, v.canonical, v.source, v.created_at
    FROM workflows w JOIN workflow_versions v ON v.workflow_id = w.id
"""
# After every other.
_NO_VERSION = 2**31 - 1
_BY_NAME_OR_ID = (
    "w.id = (SELECT id FROM workflows WHERE name = $1 OR id = $2 ORDER BY name = $1 DESC LIMIT 1)"
)


async def insert_workflow_version(db: Session, version: WorkflowVersion) -> None:
    """The first version also makes the workflow."""
    try:
        if version.version == 1:
            await db.execute(
                "INSERT INTO workflows (id, name, created_at) VALUES ($1, $2, $3)",
                version.workflow_id,
                version.name,
                version.created_at,
            )
        await db.execute(
            "INSERT INTO workflow_versions (workflow_id, version, canonical, source, created_at)"
            " VALUES ($1, $2, $3, $4, $5)",
            version.workflow_id,
            version.version,
            version.canonical,
            version.source,
            version.created_at,
        )
    except asyncpg.UniqueViolationError as exc:
        raise AlreadyExists(
            f"There is already a version {version.version} of the workflow {version.name!r}.",
            fix="Save it again: it then becomes the next version.",
        ) from exc


async def latest_workflow_version(db: Session, name: str) -> WorkflowVersion | None:
    return await _newest(db, "w.name = $1", name)


async def workflow(db: Session, name_or_id: str, version: int | None = None) -> WorkflowVersion | None:
    """The workflow of that name; where there is none, the one with that id."""
    key = (name_or_id, as_uuid(name_or_id))
    if version is None:
        return await _newest(db, _BY_NAME_OR_ID, *key)
    return await _newest(db, f"{_BY_NAME_OR_ID} AND v.version = $3", *key, version)


async def workflows(
    db: Session, *, limit: int, after: str | None = None, search: str | None = None
) -> list[WorkflowVersion]:
    latest = "v.version = (SELECT max(version) FROM workflow_versions WHERE workflow_id = w.id)"
    # An empty text is a part of every name.
    found = "strpos(lower(w.name), lower($2)) > 0"
    page = await db.rows(
        f"{_SELECT} WHERE w.name > $1 AND {found} AND {latest} ORDER BY w.name LIMIT $3",
        after or "",
        search or "",
        limit,
    )
    return [_version(row) for row in page]


async def last_runs(db: Session, names: Sequence[str], *, each: int) -> dict[str, list[LastRun]]:
    page = await db.rows(
        "SELECT wanted.name, run.id::text, run.status, run.created_at FROM unnest($1::text[]) AS wanted(name)"
        " CROSS JOIN LATERAL (SELECT id, status, created_at FROM runs WHERE workflow_name = wanted.name"
        " ORDER BY id DESC LIMIT $2) AS run ORDER BY run.id DESC",
        list(names),
        each,
    )
    found: dict[str, list[LastRun]] = {}
    for name, run, status, created_at in page:
        found.setdefault(restored(name), []).append(LastRun(run, status, Instant(created_at)))
    return found


async def workflow_versions(
    db: Session, workflow_id: str, *, limit: int, before: int | None = None
) -> list[WorkflowVersion]:
    """Newest first."""
    page = await db.rows(
        f"{_SELECT} WHERE w.id = $1 AND v.version < $2 ORDER BY v.version DESC LIMIT $3",
        as_uuid(workflow_id),
        _NO_VERSION if before is None else before,
        limit,
    )
    return [_version(row) for row in page]


async def _newest(db: Session, condition: str, *values: Value) -> WorkflowVersion | None:
    row = await db.first(f"{_SELECT} WHERE {condition} ORDER BY v.version DESC LIMIT 1", *values)
    return None if row is None else _version(row)


def _version(row: Row) -> WorkflowVersion:
    workflow_id, name, version, canonical, source, created_at = row
    return WorkflowVersion(
        workflow_id=workflow_id,
        name=restored(name),
        version=version,
        canonical=canonical,
        source=source,
        created_at=Instant(created_at),
    )
