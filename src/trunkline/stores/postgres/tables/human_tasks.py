"""
Listed tasks and comments.

The run's row is the lock between comments on the same task. Listed tasks are written with the transition of their run,
which has that lock, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.ids import RunId
from trunkline.stores.port.human_tasks import HumanTaskKey, ListedTask, ListedTaskFilter, TaskComment
from trunkline.stores.port.runs import WaitingStep, WaitPosition
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.session import Column, Value, columns
from trunkline.stores.postgres.database.text_encoding import LOWEST_UUID, as_uuid, restored_row
from trunkline.stores.postgres.tables.run_lists import IS_WAITING, WAITING_COLUMNS, name_of_workflow
from trunkline.stores.rows.runs import listed_values, task_comment, waiting_step

# The time: what is left of another wait is not shown.
_JOINED = f"""
    listed_tasks JOIN steps ON steps.run_id = listed_tasks.run_id AND steps.name = listed_tasks.step
        AND steps.waiting_since = listed_tasks.since
    WHERE {IS_WAITING}
"""
_LIST = """
    INSERT INTO listed_tasks(run_id, step, person, since, due)
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
    ON CONFLICT (run_id, step, person) DO UPDATE SET since = excluded.since, due = excluded.due
"""
_UNLIST = """
    DELETE FROM listed_tasks USING unnest($1::uuid[], $2::text[]) AS old(run_id, step)
    WHERE listed_tasks.run_id = old.run_id AND listed_tasks.step = old.step
"""
_LOCK_ROW_OF_RUN = "SELECT 1 FROM runs WHERE id = $1 FOR UPDATE"
_OF_TASK = "run_id = $1 AND step = $2 AND attempts = $3 AND replies = $4"
_COMMENT = f"""
    INSERT INTO task_comments(run_id, step, attempts, replies, number, at, person, text)
    SELECT $1::uuid, $2::text, $3::int, $4::int, count(*), $5::bigint, $6::text, $7::text
    FROM task_comments WHERE {_OF_TASK} HAVING count(*) < $8::int
"""  # noqa: S608 - constants
_COMMENTS = f"SELECT at, person, text FROM task_comments WHERE {_OF_TASK} ORDER BY number"  # noqa: S608 - as above


class PostgresHumanTaskReads(PostgresReads):
    async def page(
        self, where: ListedTaskFilter, *, limit: int, after: WaitPosition | None = None
    ) -> list[WaitingStep]:
        async with self._pool.reader() as db:
            order = "since" if where.overdue_at is None else "due"
            since, run_id, step = after or (-1, LOWEST_UUID, "")
            values: list[Value | Column] = [since, run_id, step, limit]
            conditions = [
                f"(listed_tasks.{order}, listed_tasks.run_id, listed_tasks.step) > ($1::bigint, $2::uuid, $3::text)"
            ]

            def add(condition: str, value: Value | Column) -> None:
                values.append(value)
                conditions.append(condition % f"${len(values)}")

            if where.overdue_at is not None:
                add("listed_tasks.due < %s::bigint", where.overdue_at)
            if where.kind is not None:
                add("steps.waiting_kind = %s::text", where.kind)
            if where.workflow is not None:
                add("steps.waiting_workflow = %s::text", await name_of_workflow(db, where.workflow))
            place = f"listed_tasks.{order} AS place, listed_tasks.run_id, listed_tasks.step"
            first = f"{_JOINED} AND {' AND '.join(conditions)}"
            if where.people is None:
                listed = f"SELECT DISTINCT {place} FROM {first} ORDER BY 1, 2, 3 LIMIT $4"  # noqa: S608 - constants
            else:
                values.append([*where.people])
                # Each of them by the index: together, they would be sorted.
                listed = (
                    f"SELECT DISTINCT found.* FROM unnest(${len(values)}::text[]) AS asked(person) CROSS JOIN LATERAL ("  # noqa: S608 - as above
                    f"SELECT {place} FROM {first} AND listed_tasks.person = asked.person ORDER BY 1, 2, 3 LIMIT $4"
                    ") AS found ORDER BY 1, 2, 3 LIMIT $4"
                )
            sql = f"""
                SELECT {WAITING_COLUMNS} FROM ({listed}) AS listed
                    JOIN steps ON steps.run_id = listed.run_id AND steps.name = listed.step
                    JOIN runs ON runs.id = listed.run_id
                ORDER BY listed.place, listed.run_id, listed.step
            """  # noqa: S608 - as above
            return [waiting_step(restored_row(row)) for row in await db.rows(sql, *values)]

    async def comments(self, key: HumanTaskKey) -> list[TaskComment]:
        if as_uuid(key.run_id) is None:
            return []
        return [task_comment(restored_row(row)) for row in await self._rows(_COMMENTS, *key)]


class PostgresHumanTaskWrites(PostgresWrites):
    __slots__ = ()

    async def list(self, tasks: Sequence[ListedTask]) -> None:
        await self.unlist([(task.run_id, task.step) for task in tasks])
        await self._db.execute(_LIST, *columns(sorted(listed_values(tasks), key=_place), 5))

    async def unlist(self, places: Sequence[tuple[RunId, str]]) -> None:
        await self._db.execute(_UNLIST, *columns(sorted(places), 2))

    async def comment(self, key: HumanTaskKey, comment: TaskComment, *, most: int) -> bool:
        if await self._db.first(_LOCK_ROW_OF_RUN, as_uuid(key.run_id)) is None:
            return False
        values = (*key, comment.at, comment.by, comment.text, most)
        return bool(await self._db.execute(_COMMENT, *values))


def _place(row: tuple[str, str, str, int, int | None]) -> tuple[str, str, str]:
    return row[:3]
