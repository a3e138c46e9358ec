"""Lists of runs, one statement for each index scan, all from one snapshot; and of steps that wait for a person."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import apsw
import msgspec

from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.machine.state import FINAL_RUN_STATUSES, RUN_STATUSES
from trunkline.stores.port.run_filters import MAX_LABELLED_COUNTED, IndexScan, RunFilter, index_scans
from trunkline.stores.port.runs import RunRecord, WaitingStep, WaitKind, WaitPosition
from trunkline.stores.rows.runs import run_record, waiting_step
from trunkline.stores.sqlite.database.statements import Row, Value, execute, rows

RUN_COLUMNS = (
    "id, workflow_id, workflow_name, workflow_version, status, version, seq, input, correlation_id, created_at,"
    " output, error, paused, retry_of, cancel_requested_at, started_at, finished_at, contexts, traceparent, tracestate,"
    " parent_id, parent_step, depth, routes, started_by, trigger_name, message, labels, block, compensation"
)
# Statuses, as SQL has them.
UNFINISHED = ", ".join(f"'{status}'" for status in RUN_STATUSES if status not in FINAL_RUN_STATUSES)
_WITHOUT_PAYLOADS = {"input": "x''", "output": "x''", "message": "NULL"}
_COLUMNS_WITHOUT_PAYLOADS = ", ".join(
    _WITHOUT_PAYLOADS.get(column, column) for column in RUN_COLUMNS.split(", ")
)
_OF_VERSIONS = """
    (workflow_name, workflow_version) IN
        (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))
"""
_HAS_LABEL = """
    EXISTS (SELECT 1 FROM run_labels AS other, json_each(?) AS asked
        WHERE other.run_id = runs.id AND other.key = json_extract(asked.value, '$[0]')
            AND other.value = json_extract(asked.value, '$[1]'))
"""
_COUNT_LABELLED = """
    SELECT count(*) FROM (SELECT 1 FROM run_labels WHERE key = ? AND value = ? LIMIT ?)
"""
# In the words of the indexes of waiting steps. The status: a program of the revision before writes nothing else of it.
IS_WAITING = "steps.waiting_since IS NOT NULL AND steps.status IN ('WAITING', 'OUTCOME_UNKNOWN')"
WAITING_COLUMNS = """
    steps.waiting_since, steps.run_id, steps.name, runs.workflow_id, runs.workflow_name, runs.workflow_version,
    runs.block, steps.attempts, steps.replies, steps.protocol, steps.waiting_for
"""
# CROSS JOIN keeps SQLite from beginning with the runs.
_WAITING = f"""
    SELECT {WAITING_COLUMNS} FROM steps CROSS JOIN runs ON runs.id = steps.run_id WHERE {IS_WAITING}
"""  # noqa: S608 - constants
_AFTER = "(steps.waiting_since, steps.run_id, steps.name) > (?, ?, ?)"
OF_WORKFLOW = "steps.waiting_workflow = coalesce((SELECT name FROM workflows WHERE id = ?), ?)"


def page_of_runs(
    db: apsw.Connection, *, limit: int, before: RunId | None, where: RunFilter, payloads: bool
) -> list[RunRecord]:
    columns = RUN_COLUMNS if payloads else _COLUMNS_WITHOUT_PAYLOADS
    found: list[Row] = []
    with _snapshot(db):
        where = _rarest_label_first(db, where)
        for scan in index_scans(where):
            # What is older than a whole page of the scans before is not on the page.
            lowest = found[-1][0] if len(found) == limit else None
            sql, values = statement(columns, scan, where, before=before, lowest=lowest)
            found += rows(db, sql, (*values, limit))
            found = sorted(found, key=_id_of, reverse=True)[:limit]
    return [run_record(row) for row in found]


def statement(
    columns: str,
    scan: IndexScan,
    where: RunFilter,
    *,
    before: RunId | None = None,
    lowest: RunId | None = None,
) -> tuple[str, Sequence[Value]]:
    """Without the value of its limit, which is the last one."""
    run_id = "label.run_id" if _begins_with_label(where) else "id"
    asked: list[tuple[str, Value]] = [
        ("correlation_id = ?", where.correlation_id),
        ("parent_id = ?", where.parent),
        ("workflow_name = ?", scan.name),
        ("workflow_version = ?", scan.version),
        ("status = ?", scan.status),
        (f"{run_id} >= ?", where.lowest if lowest is None else lowest),
        (f"{run_id} < ?", where.end(before)),
    ]
    asked += _with_labels(where)
    if scan.status is None and where.statuses:
        asked.append(("status IN (SELECT value FROM json_each(?))", encode(where.statuses).decode()))
    if scan.name is None and where.workflows is not None:
        asked.append(("workflow_name IN (SELECT value FROM json_each(?))", encode(where.workflows).decode()))
    if scan.version is None and where.versions is not None:
        asked.append((_OF_VERSIONS, encode(where.versions).decode()))
    given = [(condition, value) for condition, value in asked if value is not None]
    conditions = [condition for condition, _ in given]
    if scan.has_parent is not None:
        conditions.append("parent_id IS NOT NULL" if scan.has_parent else "parent_id IS NULL")
    elif not where.with_children:
        conditions.append("parent_id IS NULL")
    if where.parent is None:
        # Also what the partial indexes have to know.
        conditions.append("block IS NULL")
    text = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    sql = f"SELECT {columns} FROM {_source(scan, where)}{text} ORDER BY {run_id} DESC LIMIT ?"  # noqa: S608 - constants
    return sql, [value for _, value in given]


def _with_labels(where: RunFilter) -> list[tuple[str, Value]]:
    given: list[tuple[str, Value]] = []
    labels = where.labels
    if _begins_with_label(where):
        key, value = labels[0]
        given += [("label.key = ?", key), ("label.value = ?", value)]
        labels = labels[1:]
    return given + [(_HAS_LABEL, encode([label]).decode()) for label in labels]


def _begins_with_label(where: RunFilter) -> bool:
    return bool(where.labels) and where.correlation_id is None and where.parent is None


def _rarest_label_first(db: apsw.Connection, where: RunFilter) -> RunFilter:
    if len(where.labels) < 2:
        return where
    counts: dict[tuple[str, str], int] = {}
    for key, value in where.labels:
        ((counts[key, value],),) = rows(db, _COUNT_LABELLED, (key, value, MAX_LABELLED_COUNTED))
    return msgspec.structs.replace(where, labels=tuple(sorted(where.labels, key=counts.__getitem__)))


def _source(scan: IndexScan, where: RunFilter) -> str:
    # CROSS JOIN keeps SQLite from beginning with the runs.
    if _begins_with_label(where):
        return "run_labels AS label INDEXED BY ix_run_labels CROSS JOIN runs ON runs.id = label.run_id"
    return f"runs{_index(scan, where)}"


def _index(scan: IndexScan, where: RunFilter) -> str:
    # Chosen here and not by SQLite: without statistics it may take an index that fits less.
    if where.parent is not None:
        index = "ix_runs_parent"
    elif where.correlation_id is not None:
        index = "ix_runs_correlation"
    elif scan.version is not None:
        index = "ix_runs_version_child" if scan.has_parent else "ix_runs_version_top"
    elif scan.name is not None:
        index = "ix_runs_workflow_name"
    elif scan.status is not None:
        index = "ix_runs_child" if scan.has_parent else "ix_runs_top"
    else:
        return ""
    return f" INDEXED BY {index}"


@contextmanager
def _snapshot(db: apsw.Connection) -> Generator[None]:
    execute(db, "BEGIN")
    try:
        yield
    finally:
        execute(db, "COMMIT")


def _id_of(row: Row) -> RunId:
    return row[0]


def page_of_waiting_steps(
    db: apsw.Connection,
    *,
    limit: int,
    after: WaitPosition | None,
    kind: WaitKind | None,
    workflow: str | None,
) -> list[WaitingStep]:
    conditions: list[str] = []
    values: list[Value] = []
    if after is not None:
        conditions.append(_AFTER)
        values += [after.since, after.run_id, after.step]
    if kind is not None:
        conditions.append("steps.waiting_kind = ?")
        values.append(kind)
    if workflow is not None:
        conditions.append(OF_WORKFLOW)
        values += [workflow, workflow]
    asked = "".join(f" AND {condition}" for condition in conditions)
    page = rows(
        db,
        f"{_WAITING}{asked} ORDER BY steps.waiting_since, steps.run_id, steps.name LIMIT ?",
        (*values, limit),
    )
    return [waiting_step(row) for row in page]
