"""Lists of runs: one statement for each walk, all of them of one moment."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import apsw

from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.stores.base import RunRecord
from trunkline.stores.port.run_filters import RunFilter, SavedVersion, Walk, walks
from trunkline.stores.sqlite.database.statements import Row, Value, execute, rows
from trunkline.stores.sqlite.tables.runs import RUN_COLUMNS, run_record

_PAYLOADS = ("input", "output")
_COLUMNS_WITHOUT_PAYLOADS = ", ".join(
    "x''" if column in _PAYLOADS else column for column in RUN_COLUMNS.split(", ")
)
_OF_VERSIONS = """
    (workflow_name, workflow_version) IN
        (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))
"""
_SAVED_VERSIONS = """
    SELECT w.id, w.name, v.version FROM workflows w JOIN workflow_versions v ON v.workflow_id = w.id
    ORDER BY w.name, v.version
"""


def list_runs(
    db: apsw.Connection, *, limit: int, before: RunId | None, where: RunFilter, payloads: bool
) -> list[RunRecord]:
    columns = RUN_COLUMNS if payloads else _COLUMNS_WITHOUT_PAYLOADS
    found: list[Row] = []
    with _one_moment(db):
        for walk in walks(where):
            # What is older than a whole page of the walks before is not on the page.
            lowest = found[-1][0] if len(found) == limit else None
            sql, values = statement(columns, walk, where, before=before, lowest=lowest)
            found += rows(db, sql, (*values, limit))
            found = sorted(found, key=_id_of, reverse=True)[:limit]
    return [run_record(row) for row in found]


def statement(
    columns: str, walk: Walk, where: RunFilter, *, before: RunId | None = None, lowest: RunId | None = None
) -> tuple[str, Sequence[Value]]:
    """Without the value of its limit, which is the last one."""
    asked: list[tuple[str, Value]] = [
        ("correlation_id = ?", where.correlation_id),
        ("parent_id = ?", where.parent),
        ("workflow_name = ?", walk.name),
        ("workflow_version = ?", walk.version),
        ("status = ?", walk.status),
        ("id >= ?", where.lowest if lowest is None else lowest),
        ("id < ?", where.end(before)),
    ]
    if walk.status is None and where.statuses:
        asked.append(("status IN (SELECT value FROM json_each(?))", encode(where.statuses).decode()))
    if walk.name is None and where.workflows is not None:
        asked.append(("workflow_name IN (SELECT value FROM json_each(?))", encode(where.workflows).decode()))
    if walk.version is None and where.versions is not None:
        asked.append((_OF_VERSIONS, encode(where.versions).decode()))
    given = [(condition, value) for condition, value in asked if value is not None]
    conditions = [condition for condition, _ in given]
    if walk.has_parent is not None:
        conditions.append("parent_id IS NOT NULL" if walk.has_parent else "parent_id IS NULL")
    elif not where.with_children:
        conditions.append("parent_id IS NULL")
    text = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    sql = f"SELECT {columns} FROM runs{_index(walk, where)}{text} ORDER BY id DESC LIMIT ?"  # noqa: S608 - constants
    return sql, [value for _, value in given]


def _index(walk: Walk, where: RunFilter) -> str:
    # Said, not left to SQLite: without statistics it takes an index that fits less for as good.
    if where.correlation_id is not None:
        index = "ix_runs_correlation"
    elif where.parent is not None:
        index = "ix_runs_parent"
    elif walk.version is not None:
        index = "ix_runs_version_child" if walk.has_parent else "ix_runs_version_top"
    elif walk.name is not None:
        index = "ix_runs_workflow_name"
    elif walk.status is not None:
        index = "ix_runs_status" if walk.has_parent is None else "ix_runs_top"
    else:
        return ""
    return f" INDEXED BY {index}"


@contextmanager
def _one_moment(db: apsw.Connection) -> Generator[None]:
    execute(db, "BEGIN")
    try:
        yield
    finally:
        execute(db, "COMMIT")


def _id_of(row: Row) -> RunId:
    return row[0]


def saved_versions(db: apsw.Connection) -> list[SavedVersion]:
    return [SavedVersion(*row) for row in rows(db, _SAVED_VERSIONS)]
