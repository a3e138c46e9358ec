"""Workflows and their versions."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from trunkline.clock import Clock, Instant
from trunkline.errors import AlreadyExists
from trunkline.stores.port.workflows import LastRun, SavedVersion, WorkflowVersion
from trunkline.stores.rows.runs import workflow_version, workflow_version_values
from trunkline.stores.sqlite.cache import CacheChanges, CommittedCache
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import Value, execute, first, is_duplicate, rows

_SELECT = """
    SELECT w.id, w.name, v.version, v.canonical, v.source, v.created_at
    FROM workflows w JOIN workflow_versions v ON v.workflow_id = w.id
"""
_LATEST = "v.version = (SELECT max(version) FROM workflow_versions WHERE workflow_id = w.id)"
# An empty text is a part of every name. Names with a slash are not those of users.
_FOUND = "instr(lower(w.name), lower(?)) > 0 AND instr(w.name, '/') = 0"
_LAST_RUNS = """
    SELECT id, status, created_at FROM runs WHERE workflow_name = ? AND block IS NULL ORDER BY id DESC LIMIT ?
"""
_ALL_VERSIONS = """
    SELECT w.id, w.name, v.version FROM workflows w JOIN workflow_versions v ON v.workflow_id = w.id
    ORDER BY w.name, v.version
"""


class SqliteWorkflowReads(SqliteReads):
    __slots__ = ("_cache",)

    def __init__(self, db: apsw.Connection, clock: Clock, cache: CommittedCache) -> None:
        super().__init__(db, clock)
        self._cache = cache

    async def get(self, name_or_id: str, version: int | None = None) -> WorkflowVersion | None:
        known = self._cache.workflows.get((name_or_id, version))
        if known is not None:
            return known
        found = self._read(name_or_id, version)
        if found is not None:
            self._cache.workflows.put({(name_or_id, version): found})
        return found

    def _read(self, name_or_id: str, version: int | None) -> WorkflowVersion | None:
        row = first(self._db, "SELECT id FROM workflows WHERE name = ?", (name_or_id,))
        workflow_id = name_or_id if row is None else str(row[0])
        if version is None:
            return _newest(self._db, "w.id = ?", (workflow_id,))
        return _newest(self._db, "w.id = ? AND v.version = ?", (workflow_id, version))

    async def page(
        self, *, limit: int, after: str | None = None, search: str | None = None
    ) -> list[WorkflowVersion]:
        page = rows(
            self._db,
            f"{_SELECT} WHERE w.name > ? AND {_FOUND} AND {_LATEST} ORDER BY w.name LIMIT ?",
            (after or "", search or "", limit),
        )
        return [workflow_version(row) for row in page]

    async def last_runs(self, names: Sequence[str], *, each: int) -> dict[str, list[LastRun]]:
        found = {
            name: [
                LastRun(run, status, Instant(created_at))
                for run, status, created_at in rows(self._db, _LAST_RUNS, (name, each))
            ]
            for name in names
        }
        return {name: runs for name, runs in found.items() if runs}

    async def versions(
        self, workflow_id: str, *, limit: int, before: int | None = None
    ) -> list[WorkflowVersion]:
        page = rows(
            self._db,
            f"{_SELECT} WHERE w.id = ?1 AND (?2 IS NULL OR v.version < ?2) ORDER BY v.version DESC LIMIT ?3",
            (workflow_id, before, limit),
        )
        return [workflow_version(row) for row in page]

    async def all_versions(self) -> list[SavedVersion]:
        return [SavedVersion(*row) for row in rows(self._db, _ALL_VERSIONS)]


class SqliteWorkflowWrites(SqliteWrites):
    __slots__ = ("_changes",)

    def __init__(self, db: apsw.Connection, now: Instant, changes: CacheChanges) -> None:
        super().__init__(db, now)
        self._changes = changes

    async def insert_version(self, version: WorkflowVersion) -> None:
        self._changes.workflows = True
        try:
            if version.version == 1:
                execute(
                    self._db,
                    "INSERT INTO workflows (id, name, created_at) VALUES (?, ?, ?)",
                    (version.workflow_id, version.name, version.created_at),
                )
            execute(
                self._db,
                "INSERT INTO workflow_versions (workflow_id, version, canonical, source, created_at)"
                " VALUES (?, ?, ?, ?, ?)",
                workflow_version_values(version),
            )
        except apsw.ConstraintError as exc:
            if not is_duplicate(exc):
                raise
            raise AlreadyExists(
                f"Version {version.version} of the workflow {version.name!r} already exists.",
                fix="Save the definition again. It becomes the next version.",
            ) from exc

    async def latest_version(self, name: str) -> WorkflowVersion | None:
        return _newest(self._db, "w.name = ?", (name,))


def _newest(db: apsw.Connection, condition: str, values: tuple[Value, ...]) -> WorkflowVersion | None:
    row = first(db, f"{_SELECT} WHERE {condition} ORDER BY v.version DESC LIMIT 1", values)
    return None if row is None else workflow_version(row)
