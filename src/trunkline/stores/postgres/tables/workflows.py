"""Workflows and their versions."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.stores.port.workflows import LastRun, SavedVersion, WorkflowVersion
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.text_encoding import as_uuid, restored, restored_row
from trunkline.stores.rows import Row
from trunkline.stores.rows.runs import workflow_version, workflow_version_values

_SELECT = """
    SELECT w.id::text, w.name, v.version, v.canonical, v.source, v.created_at
    FROM workflows w JOIN workflow_versions v ON v.workflow_id = w.id
"""
# After every other.
_NO_VERSION = 2**31 - 1
_BY_NAME_OR_ID = (
    "w.id = (SELECT id FROM workflows WHERE name = $1 OR id = $2 ORDER BY name = $1 DESC LIMIT 1)"
)
_NEWEST = "ORDER BY v.version DESC LIMIT 1"
_LATEST = "v.version = (SELECT max(version) FROM workflow_versions WHERE workflow_id = w.id)"
# An empty text is a part of every name. Names with a slash are not those of users.
_FOUND = "strpos(lower(w.name), lower($2)) > 0 AND strpos(w.name, '/') = 0"
_LAST_RUNS = """
    SELECT wanted.name, run.id::text, run.status, run.created_at FROM unnest($1::text[]) AS wanted(name)
        CROSS JOIN LATERAL (
            SELECT id, status, created_at FROM runs
            WHERE workflow_name = wanted.name AND block IS NULL ORDER BY id DESC LIMIT $2
        ) AS run
    ORDER BY run.id DESC
"""
_ALL_VERSIONS = """
    SELECT w.id::text, w.name, v.version FROM workflows w JOIN workflow_versions v ON v.workflow_id = w.id
    ORDER BY w.name, v.version
"""


class PostgresWorkflowReads(PostgresReads):
    async def get(self, name_or_id: str, version: int | None = None) -> WorkflowVersion | None:
        key = (name_or_id, as_uuid(name_or_id))
        if version is None:
            row = await self._first(f"{_SELECT} WHERE {_BY_NAME_OR_ID} {_NEWEST}", *key)
        else:
            row = await self._first(
                f"{_SELECT} WHERE {_BY_NAME_OR_ID} AND v.version = $3 {_NEWEST}", *key, version
            )
        return None if row is None else _version(row)

    async def page(
        self, *, limit: int, after: str | None = None, search: str | None = None
    ) -> list[WorkflowVersion]:
        page = await self._rows(
            f"{_SELECT} WHERE w.name > $1 AND {_FOUND} AND {_LATEST} ORDER BY w.name LIMIT $3",
            after or "",
            search or "",
            limit,
        )
        return [_version(row) for row in page]

    async def last_runs(self, names: Sequence[str], *, each: int) -> dict[str, list[LastRun]]:
        found: dict[str, list[LastRun]] = {}
        for name, run, status, created_at in await self._rows(_LAST_RUNS, list(names), each):
            found.setdefault(restored(name), []).append(LastRun(run, status, Instant(created_at)))
        return found

    async def versions(
        self, workflow_id: str, *, limit: int, before: int | None = None
    ) -> list[WorkflowVersion]:
        page = await self._rows(
            f"{_SELECT} WHERE w.id = $1 AND v.version < $2 ORDER BY v.version DESC LIMIT $3",
            as_uuid(workflow_id),
            _NO_VERSION if before is None else before,
            limit,
        )
        return [_version(row) for row in page]

    async def all_versions(self) -> list[SavedVersion]:
        return [SavedVersion(*restored_row(row)) for row in await self._rows(_ALL_VERSIONS)]


class PostgresWorkflowWrites(PostgresWrites):
    __slots__ = ()

    async def insert_version(self, version: WorkflowVersion) -> None:
        try:
            if version.version == 1:
                await self._db.execute(
                    "INSERT INTO workflows (id, name, created_at) VALUES ($1, $2, $3)",
                    version.workflow_id,
                    version.name,
                    version.created_at,
                )
            await self._db.execute(
                "INSERT INTO workflow_versions (workflow_id, version, canonical, source, created_at)"
                " VALUES ($1, $2, $3, $4, $5)",
                *workflow_version_values(version),
            )
        except asyncpg.UniqueViolationError as exc:
            raise AlreadyExists(
                f"Version {version.version} of the workflow {version.name!r} already exists.",
                fix="Save the definition again. It becomes the next version.",
            ) from exc

    async def latest_version(self, name: str) -> WorkflowVersion | None:
        row = await self._db.first(f"{_SELECT} WHERE w.name = $1 {_NEWEST}", name)
        return None if row is None else _version(row)


def _version(row: Row) -> WorkflowVersion:
    return workflow_version(restored_row(row))
