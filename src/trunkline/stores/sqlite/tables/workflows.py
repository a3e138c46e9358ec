"""Workflows in SQLite: statements over the caller's connection, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.stores.base import LastRun, WorkflowVersion
from trunkline.stores.sqlite.database.statements import Row, Value, execute, first, is_duplicate, rows

_SELECT = """
    SELECT w.id, w.name, v.version, v.canonical, v.source, v.created_at
    FROM workflows w JOIN workflow_versions v ON v.workflow_id = w.id
"""


def insert_workflow_version(db: apsw.Connection, version: WorkflowVersion) -> None:
    """The first version also makes the workflow."""
    try:
        if version.version == 1:
            execute(
                db,
                "INSERT INTO workflows (id, name, created_at) VALUES (?, ?, ?)",
                (version.workflow_id, version.name, version.created_at),
            )
        execute(
            db,
            "INSERT INTO workflow_versions (workflow_id, version, canonical, source, created_at)"
            " VALUES (?, ?, ?, ?, ?)",
            (version.workflow_id, version.version, version.canonical, version.source, version.created_at),
        )
    except apsw.ConstraintError as exc:
        if not is_duplicate(exc):
            raise
        raise AlreadyExists(
            f"There is already a version {version.version} of the workflow {version.name!r}.",
            fix="Save it again: it then becomes the next version.",
        ) from exc


def latest_workflow_version(db: apsw.Connection, name: str) -> WorkflowVersion | None:
    return _newest(db, "w.name = ?", (name,))


def workflow(db: apsw.Connection, name_or_id: str, version: int | None = None) -> WorkflowVersion | None:
    """The workflow of that name; where there is none, the one with that id."""
    row = first(db, "SELECT id FROM workflows WHERE name = ?", (name_or_id,))
    workflow_id = name_or_id if row is None else str(row[0])
    if version is None:
        return _newest(db, "w.id = ?", (workflow_id,))
    return _newest(db, "w.id = ? AND v.version = ?", (workflow_id, version))


def workflows(
    db: apsw.Connection, *, limit: int, after: str | None = None, search: str | None = None
) -> list[WorkflowVersion]:
    latest = "v.version = (SELECT max(version) FROM workflow_versions WHERE workflow_id = w.id)"
    # An empty text is a part of every name.
    found = "instr(lower(w.name), lower(?)) > 0"
    page = rows(
        db,
        f"{_SELECT} WHERE w.name > ? AND {found} AND {latest} ORDER BY w.name LIMIT ?",
        (after or "", search or "", limit),
    )
    return [_version(row) for row in page]


def last_runs(db: apsw.Connection, names: Sequence[str], *, each: int) -> dict[str, list[LastRun]]:
    query = "SELECT id, status, created_at FROM runs WHERE workflow_name = ? ORDER BY id DESC LIMIT ?"
    found = {
        name: [
            LastRun(run, status, Instant(created_at))
            for run, status, created_at in rows(db, query, (name, each))
        ]
        for name in names
    }
    return {name: runs for name, runs in found.items() if runs}


def workflow_versions(
    db: apsw.Connection, workflow_id: str, *, limit: int, before: int | None = None
) -> list[WorkflowVersion]:
    """Newest first."""
    condition = "w.id = ?1 AND (?2 IS NULL OR v.version < ?2)"
    page = rows(
        db,
        f"{_SELECT} WHERE {condition} ORDER BY v.version DESC LIMIT ?3",
        (workflow_id, before, limit),
    )
    return [_version(row) for row in page]


def _newest(db: apsw.Connection, condition: str, values: tuple[Value, ...]) -> WorkflowVersion | None:
    row = first(db, f"{_SELECT} WHERE {condition} ORDER BY v.version DESC LIMIT 1", values)
    return None if row is None else _version(row)


def _version(row: Row) -> WorkflowVersion:
    workflow_id, name, version, canonical, source, created_at = row
    return WorkflowVersion(
        workflow_id=workflow_id,
        name=name,
        version=version,
        canonical=canonical,
        source=source,
        created_at=Instant(created_at),
    )
