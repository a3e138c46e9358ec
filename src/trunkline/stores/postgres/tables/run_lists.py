"""Lists of runs, all index scans in one statement; and of steps that wait for a person."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from trunkline.ids import RunId
from trunkline.stores.port.run_filters import MAX_LABELLED_COUNTED, IndexScan, RunFilter, index_scans
from trunkline.stores.port.runs import RunRecord, WaitingStep, WaitKind, WaitPosition
from trunkline.stores.postgres.database.session import Column, Session, Value
from trunkline.stores.postgres.database.text_encoding import (
    HIGHEST_UUID,
    LOWEST_UUID,
    as_uuid,
    restored,
    restored_row,
)
from trunkline.stores.rows.runs import run_record, waiting_step

FINAL = "('COMPLETED', 'FAILED', 'CANCELLED')"

RUN_COLUMNS = """
    runs.id::text, runs.workflow_id::text, runs.workflow_name, runs.workflow_version, runs.status, runs.version,
    runs.seq, runs.input, runs.correlation_id, runs.created_at, runs.output, runs.error, runs.paused,
    runs.retry_of::text, runs.cancel_requested_at, runs.started_at, runs.finished_at, runs.contexts,
    runs.traceparent, runs.tracestate, runs.parent_id::text, runs.parent_step, runs.depth, runs.routes,
    runs.started_by, runs.trigger_name, runs.message, runs.labels, runs.block, runs.compensation
"""
_COLUMNS_WITHOUT_PAYLOADS = (
    RUN_COLUMNS.replace("runs.input", "''::bytea")
    .replace("runs.output", "NULL::bytea")
    .replace("runs.message", "NULL::bytea")
)
# In the words of the indexes of waiting steps. The status: a program of the revision before writes nothing else of it.
IS_WAITING = "steps.waiting_since IS NOT NULL AND steps.status IN ('WAITING', 'OUTCOME_UNKNOWN')"
WAITING_COLUMNS = """
    steps.waiting_since, steps.run_id::text, steps.name, runs.workflow_id::text, runs.workflow_name,
    runs.workflow_version, runs.block, steps.attempts, steps.replies, steps.protocol, steps.waiting_for
"""
_WAITING = f"SELECT {WAITING_COLUMNS} FROM steps JOIN runs ON runs.id = steps.run_id WHERE {IS_WAITING}"  # noqa: S608 - constants
_COUNT_LABELLED = """
    SELECT count(*) FROM (SELECT 1 FROM run_labels WHERE key = $1 AND value = $2 LIMIT $3) AS labelled
"""
# Of a scan, in the order of its fields, with their types.
_KEYS = {"workflow_name": "text", "workflow_version": "int", "status": "text"}


async def page_of_runs(
    db: Session, *, limit: int, before: RunId | None, where: RunFilter, payloads: bool
) -> list[RunRecord]:
    if any(run is not None and as_uuid(run) is None for run in (before, where.parent)) or not index_scans(
        where
    ):
        return []
    where = await rarest_label_first(db, where)
    sql, values = statement(limit=limit, before=before, where=where, payloads=payloads)
    return [run_record(restored_row(row)) for row in await db.rows(sql, *values)]


async def rarest_label_first(db: Session, where: RunFilter) -> RunFilter:
    if len(where.labels) < 2:
        return where
    counts: dict[tuple[str, str], int] = {}
    for key, value in where.labels:
        row = await db.first(_COUNT_LABELLED, key, value, MAX_LABELLED_COUNTED)
        counts[key, value] = 0 if row is None else row[0]
    return msgspec.structs.replace(where, labels=tuple(sorted(where.labels, key=counts.__getitem__)))


def statement(
    *, limit: int, before: RunId | None, where: RunFilter, payloads: bool
) -> tuple[str, Sequence[Value | Column]]:
    values = _StatementValues()
    span = _IdRange(
        values.place(where.lowest or LOWEST_UUID),
        values.place(where.end(before) or HIGHEST_UUID),
        values.place(limit),
    )
    todo = index_scans(where)
    # Partial indexes: whether there is a parent has to stand in the statement itself.
    parts = [
        _part(values, span, [scan for scan in todo if scan.has_parent is has_parent], where)
        for has_parent in dict.fromkeys(scan.has_parent for scan in todo)
    ]
    columns = RUN_COLUMNS if payloads else _COLUMNS_WITHOUT_PAYLOADS
    union = " UNION ALL ".join(parts)
    sql = f"SELECT {columns} FROM ({union}) AS runs ORDER BY runs.id DESC LIMIT {span.limit}"  # noqa: S608 - constants
    return sql, values.given


class _StatementValues:
    def __init__(self) -> None:
        self.given: list[Value | Column] = []

    def place(self, value: Value | Column) -> str:
        self.given.append(value)
        return f"${len(self.given)}"


class _IdRange(NamedTuple):
    """Places of values."""

    lowest: str
    end: str
    limit: str


def _part(values: _StatementValues, span: _IdRange, todo: Sequence[IndexScan], where: RunFilter) -> str:
    """The newest of some scans that differ only by their values."""
    if _begins_with_label(where):
        return _labelled(values, span, where)
    if where.parent is not None:
        keys = {"parent_id": values.place(where.parent)}
    elif where.correlation_id is not None:
        keys = {"correlation_id": values.place(where.correlation_id)}
    else:
        keys = {
            name: f"scan.{name}" for name, value in zip(_KEYS, todo[0], strict=False) if value is not None
        }
    last = next(reversed(keys), None)
    # The last key and the id are compared, and sorted, as a whole: told that all keys are the same everywhere,
    # PostgreSQL would scan all runs by their ids wherever it takes what is looked for to be frequent.
    # The price: a span with less than a page in it is looked for to the end of the key, though only in the index.
    compared = ["id"] if last is None else [last, "id"]
    given = [] if last is None else [keys[last]]
    whole = ", ".join(compared)
    conditions = [
        *(f"{name} = {value}" for name, value in keys.items() if name != last),
        f"({whole}) >= ({', '.join([*given, span.lowest])})",
        f"({whole}) < ({', '.join([*given, span.end])})",
        *_rest(values, keys, where),
    ]
    if todo[0].has_parent is not None:
        conditions.append("parent_id IS NOT NULL" if todo[0].has_parent else "parent_id IS NULL")
    order = ", ".join(f"{name} DESC" for name in compared)
    newest = f"(SELECT * FROM runs WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT {span.limit})"  # noqa: S608 - as above
    scanned = [name for name in keys if name in _KEYS]
    if not scanned:
        return newest
    arrays = ", ".join(
        f"{values.place([scan[place] for scan in todo])}::{kind}[]"
        for place, (name, kind) in enumerate(_KEYS.items())
        if name in scanned
    )
    return f"SELECT found.* FROM unnest({arrays}) AS scan({', '.join(scanned)}) CROSS JOIN LATERAL {newest} AS found"  # noqa: S608 - as above


def _begins_with_label(where: RunFilter) -> bool:
    return bool(where.labels) and where.correlation_id is None and where.parent is None


def _labelled(values: _StatementValues, span: _IdRange, where: RunFilter) -> str:
    """The newest of those with the first label; compared as a whole, for the same reason as in `_part`."""
    label = ", ".join(map(values.place, where.labels[0]))
    others = _rest(values, (), msgspec.structs.replace(where, labels=where.labels[1:]))
    conditions = [
        f"(label.key, label.value, label.run_id) >= ({label}, {span.lowest})",
        f"(label.key, label.value, label.run_id) < ({label}, {span.end})",
        *others,
    ]
    joined = "run_labels AS label JOIN runs ON runs.id = label.run_id"
    order = "label.key DESC, label.value DESC, label.run_id DESC"
    return (
        f"(SELECT runs.* FROM {joined} WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT {span.limit})"  # noqa: S608 - constants
    )


def _rest(values: _StatementValues, keys: Collection[str], where: RunFilter) -> list[str]:
    """What is sorted out on the way."""
    conditions: list[str] = []
    if where.parent is not None:
        # What the partial index has to know.
        conditions.append("parent_id IS NOT NULL")
    if where.correlation_id is not None and "correlation_id" not in keys:
        conditions.append(f"correlation_id = {values.place(where.correlation_id)}")
    if "status" not in keys and where.statuses:
        conditions.append(f"status = ANY({values.place([*where.statuses])}::text[])")
    if "workflow_name" not in keys and where.workflows is not None:
        conditions.append(f"workflow_name = ANY({values.place([*where.workflows])}::text[])")
    if "workflow_version" not in keys and where.versions is not None:
        names = values.place([key.name for key in where.versions])
        versions = values.place([key.version for key in where.versions])
        known = f"SELECT * FROM unnest({names}::text[], {versions}::int[])"  # noqa: S608 - as above
        conditions.append(f"(workflow_name, workflow_version) IN ({known})")
    if not where.with_children:
        conditions.append("parent_id IS NULL")
    if where.parent is None:
        # Also what the partial indexes have to know.
        conditions.append("runs.block IS NULL")
    for key, value in where.labels:
        same = f"(runs.id, {values.place(key)}, {values.place(value)})"
        conditions.append(f"{same} IN (SELECT run_id, key, value FROM run_labels)")  # noqa: S608 - as above
    return conditions


async def page_of_waiting_steps(
    db: Session, *, limit: int, after: WaitPosition | None, kind: WaitKind | None, workflow: str | None
) -> list[WaitingStep]:
    since, run_id, step = after or (-1, LOWEST_UUID, "")
    first: list[tuple[str, str]] = []
    if workflow is not None:
        first.append(("steps.waiting_workflow", await name_of_workflow(db, workflow)))
    if kind is not None:
        first.append(("steps.waiting_kind", kind))
    # From the place on to the end of its workflow and kind, in the order of the index that begins with those: told of
    # an equality, PostgreSQL may take the index of all that waits instead, and read it from end to end.
    columns = [*(column for column, _ in first), "steps.waiting_since", "steps.run_id", "steps.name"]
    values: list[Value] = [*(value for _, value in first), since, run_id, step]
    places = [f"${number}" for number in range(1, 1 + len(values))]
    conditions = f" AND {_row(columns)} > {_row(places)}"
    if first:
        conditions += f" AND {_row(columns[: len(first)])} <= {_row(places[: len(first)])}"
    order = f" ORDER BY {', '.join(columns)} LIMIT ${len(values) + 1}"
    return [
        waiting_step(restored_row(row))
        for row in await db.rows(f"{_WAITING}{conditions}{order}", *values, limit)
    ]


def _row(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)})"


async def name_of_workflow(db: Session, workflow: str) -> str:
    if as_uuid(workflow) is None:
        return workflow
    row = await db.first("SELECT name FROM workflows WHERE id = $1", workflow)
    return workflow if row is None else restored(row[0])
