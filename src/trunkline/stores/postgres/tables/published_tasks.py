"""Tasks of A2A callers, and their follow-up messages."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.ids import RunId
from trunkline.stores.port.published_tasks import FollowUp, PublishedTask, TaskFilter, TaskPlace
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.session import Value, columns
from trunkline.stores.postgres.database.text_encoding import as_uuid, restored_row
from trunkline.stores.rows.published_tasks import TASK_COLUMNS, follow_up, follow_up_values, published_task

_TASKS = f"SELECT {TASK_COLUMNS.replace('run_id', 'run_id::text')} FROM published_tasks"  # noqa: S608 - constants
_FOLLOW_UPS = """
    SELECT run_id::text, key, at, question, answer FROM follow_ups WHERE run_id = $1 ORDER BY at, key
"""
_ADD = """
    INSERT INTO follow_ups(run_id, key, at, question, answer)
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bytea[], $5::bytea[]) ON CONFLICT DO NOTHING
"""


class PostgresPublishedTaskReads(PostgresReads):
    async def get(self, run_id: RunId) -> PublishedTask | None:
        row = await self._first(f"{_TASKS} WHERE run_id = $1", as_uuid(run_id))
        return None if row is None else published_task(restored_row(row))

    async def page(
        self, where: TaskFilter, *, limit: int, before: TaskPlace | None = None
    ) -> list[PublishedTask]:
        if before is not None and as_uuid(before.run_id) is None:
            return []
        conditions, values = _asked(where)
        if before is not None:
            values += [*before]
            place = len(values)
            conditions += (
                f" AND (updated_at, published_tasks.run_id) < (${place - 1}::bigint, ${place}::uuid)"
            )
        # The column, not the text of the same name that is selected: the index has the column.
        order = "updated_at DESC, published_tasks.run_id DESC"
        sql = f"{_TASKS} WHERE {conditions} ORDER BY {order} LIMIT ${len(values) + 1}"
        return [published_task(restored_row(row)) for row in await self._rows(sql, *values, limit)]

    async def count(self, where: TaskFilter, *, most: int) -> int:
        conditions, values = _asked(where)
        rows = f"SELECT 1 FROM published_tasks WHERE {conditions} LIMIT ${len(values) + 1}"  # noqa: S608 - as above
        row = await self._first(f"SELECT count(*) FROM ({rows}) AS found", *values, most)  # noqa: S608 - as above
        return 0 if row is None else row[0]

    async def follow_ups(self, run_id: RunId) -> list[FollowUp]:
        return [follow_up(restored_row(row)) for row in await self._rows(_FOLLOW_UPS, as_uuid(run_id))]


class PostgresPublishedTaskWrites(PostgresWrites):
    __slots__ = ()

    async def add_follow_ups(self, follow_ups: Sequence[FollowUp]) -> None:
        if follow_ups:
            await self._db.execute(_ADD, *columns([follow_up_values(each) for each in follow_ups], 5))


def _asked(where: TaskFilter) -> tuple[str, list[Value]]:
    asked: list[tuple[str, Value]] = [
        ("publication =", where.publication),
        ("caller =", where.caller),
        ("context_id =", where.context_id),
        ("state =", where.state),
        ("updated_at >=", where.since),
    ]
    given = [(condition, value) for condition, value in asked if value is not None]
    conditions = " AND ".join(f"{condition} ${place}" for place, (condition, _) in enumerate(given, 1))
    return conditions, [value for _, value in given]
