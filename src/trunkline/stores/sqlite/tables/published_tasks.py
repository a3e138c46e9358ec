"""Tasks of A2A callers, and their follow-up messages."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.ids import RunId
from trunkline.stores.port.published_tasks import FollowUp, PublishedTask, TaskFilter, TaskPlace
from trunkline.stores.rows.published_tasks import TASK_COLUMNS, follow_up, follow_up_values, published_task
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import Value, execute_many, first, rows

_TASKS = f"SELECT {TASK_COLUMNS} FROM published_tasks"  # noqa: S608 - constants of this module
_FOLLOW_UPS = "SELECT run_id, key, at, question, answer FROM follow_ups WHERE run_id = ? ORDER BY at, key"
_ADD = """
    INSERT INTO follow_ups(run_id, key, at, question, answer) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""


class SqlitePublishedTaskReads(SqliteReads):
    async def get(self, run_id: RunId) -> PublishedTask | None:
        row = first(self._db, f"{_TASKS} WHERE run_id = ?", (run_id,))
        return None if row is None else published_task(row)

    async def page(
        self, where: TaskFilter, *, limit: int, before: TaskPlace | None = None
    ) -> list[PublishedTask]:
        conditions, values = _asked(where)
        if before is not None:
            conditions += " AND (updated_at, run_id) < (?, ?)"
            values += [*before]
        sql = f"{_TASKS} WHERE {conditions} ORDER BY updated_at DESC, run_id DESC LIMIT ?"
        return [published_task(row) for row in rows(self._db, sql, (*values, limit))]

    async def count(self, where: TaskFilter, *, most: int) -> int:
        conditions, values = _asked(where)
        sql = f"SELECT count(*) FROM (SELECT 1 FROM published_tasks WHERE {conditions} LIMIT ?)"  # noqa: S608 - as above
        row = first(self._db, sql, (*values, most))
        return 0 if row is None else row[0]

    async def follow_ups(self, run_id: RunId) -> list[FollowUp]:
        return [follow_up(row) for row in rows(self._db, _FOLLOW_UPS, (run_id,))]


class SqlitePublishedTaskWrites(SqliteWrites):
    __slots__ = ()

    async def add_follow_ups(self, follow_ups: Sequence[FollowUp]) -> None:
        execute_many(self._db, _ADD, [follow_up_values(each) for each in follow_ups])


def _asked(where: TaskFilter) -> tuple[str, list[Value]]:
    asked: list[tuple[str, Value]] = [
        ("publication = ?", where.publication),
        ("caller = ?", where.caller),
        ("context_id = ?", where.context_id),
        ("state = ?", where.state),
        ("updated_at >= ?", where.since),
    ]
    given = [(condition, value) for condition, value in asked if value is not None]
    return " AND ".join(condition for condition, _ in given), [value for _, value in given]
