"""Lists of runs: all walks in one statement."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from trunkline.ids import RunId
from trunkline.stores.base import RunRecord
from trunkline.stores.port.run_filters import RunFilter, SavedVersion, Walk, walks
from trunkline.stores.postgres.database.session import Column, Session, Value
from trunkline.stores.postgres.database.text_encoding import HIGHEST_UUID, LOWEST_UUID, as_uuid, restored
from trunkline.stores.postgres.tables.runs import RUN_COLUMNS, run_record

_COLUMNS_WITHOUT_PAYLOADS = RUN_COLUMNS.replace("runs.input", "''::bytea").replace(
    "runs.output", "NULL::bytea"
)
_SAVED_VERSIONS = """
    SELECT w.id::text, w.name, v.version FROM workflows w JOIN workflow_versions v ON v.workflow_id = w.id
    ORDER BY w.name, v.version
"""


# Of a walk, in the order of its fields, with their types.
_KEYS = {"workflow_name": "text", "workflow_version": "int", "status": "text"}


async def list_runs(
    db: Session, *, limit: int, before: RunId | None, where: RunFilter, payloads: bool
) -> list[RunRecord]:
    if any(run is not None and as_uuid(run) is None for run in (before, where.parent)) or not walks(where):
        return []
    sql, values = statement(limit=limit, before=before, where=where, payloads=payloads)
    return [run_record(row) for row in await db.rows(sql, *values)]


def statement(
    *, limit: int, before: RunId | None, where: RunFilter, payloads: bool
) -> tuple[str, Sequence[Value | Column]]:
    values = _Values()
    span = _Span(
        values.place(where.lowest or LOWEST_UUID),
        values.place(where.end(before) or HIGHEST_UUID),
        values.place(limit),
    )
    todo = walks(where)
    # Partial indexes: whether there is a parent has to stand in the statement itself.
    parts = [
        _part(values, span, [walk for walk in todo if walk.has_parent is has_parent], where)
        for has_parent in dict.fromkeys(walk.has_parent for walk in todo)
    ]
    columns = RUN_COLUMNS if payloads else _COLUMNS_WITHOUT_PAYLOADS
    union = " UNION ALL ".join(parts)
    sql = f"SELECT {columns} FROM ({union}) AS runs ORDER BY runs.id DESC LIMIT {span.limit}"  # noqa: S608 - constants
    return sql, values.given


class _Values:
    def __init__(self) -> None:
        self.given: list[Value | Column] = []

    def place(self, value: Value | Column) -> str:
        self.given.append(value)
        return f"${len(self.given)}"


class _Span(NamedTuple):
    """Places of values."""

    lowest: str
    end: str
    limit: str


def _part(values: _Values, span: _Span, todo: Sequence[Walk], where: RunFilter) -> str:
    """The newest of some walks that differ only by their values."""
    if where.correlation_id is not None:
        keys = {"correlation_id": values.place(where.correlation_id)}
    elif where.parent is not None:
        keys = {"parent_id": values.place(where.parent)}
    else:
        keys = {
            name: f"walk.{name}" for name, value in zip(_KEYS, todo[0], strict=False) if value is not None
        }
    last = next(reversed(keys), None)
    # The last key and the id are compared, and sorted, as a whole: told that all keys are the same everywhere,
    # PostgreSQL would walk through all runs by their ids wherever it takes what is looked for to be frequent.
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
    walked = [name for name in keys if name in _KEYS]
    if not walked:
        return newest
    arrays = ", ".join(
        f"{values.place([walk[place] for walk in todo])}::{kind}[]"
        for place, (name, kind) in enumerate(_KEYS.items())
        if name in walked
    )
    return f"SELECT found.* FROM unnest({arrays}) AS walk({', '.join(walked)}) CROSS JOIN LATERAL {newest} AS found"  # noqa: S608 - as above


def _rest(values: _Values, keys: Collection[str], where: RunFilter) -> list[str]:
    """What is sorted out on the way."""
    conditions: list[str] = []
    if where.parent is not None:
        # What the partial index has to know.
        conditions.append("parent_id IS NOT NULL")
        if "parent_id" not in keys:
            conditions.append(f"parent_id = {values.place(where.parent)}")
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
    return conditions


async def saved_versions(db: Session) -> list[SavedVersion]:
    found = await db.rows(_SAVED_VERSIONS)
    return [SavedVersion(workflow_id, restored(name), version) for workflow_id, name, version in found]
