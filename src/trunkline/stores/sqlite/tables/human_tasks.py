"""Listed tasks and comments. One transaction at a time writes, so none has to be waited for."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.ids import RunId
from trunkline.stores.port.human_tasks import HumanTaskKey, ListedTask, ListedTaskFilter, TaskComment
from trunkline.stores.port.runs import WaitingStep, WaitPosition
from trunkline.stores.rows.runs import listed_values, task_comment, waiting_step
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import Value, execute, execute_many, rows
from trunkline.stores.sqlite.tables.run_lists import IS_WAITING, OF_WORKFLOW, WAITING_COLUMNS

# CROSS JOIN keeps SQLite from beginning with the steps or the runs. What is left of another wait has another time.
_LISTED = f"""
    SELECT DISTINCT listed_tasks.%(order)s, {WAITING_COLUMNS}
    FROM listed_tasks
        CROSS JOIN steps ON steps.run_id = listed_tasks.run_id AND steps.name = listed_tasks.step
            AND steps.waiting_since = listed_tasks.since
        CROSS JOIN runs ON runs.id = steps.run_id
    WHERE {IS_WAITING}
"""  # noqa: S608 - constants
_ORDER = " ORDER BY listed_tasks.%(order)s, listed_tasks.run_id, listed_tasks.step LIMIT ?"
_AFTER = "(listed_tasks.%(order)s, listed_tasks.run_id, listed_tasks.step) > (?, ?, ?)"
_LIST = "INSERT INTO listed_tasks(run_id, step, person, since, due) VALUES (?, ?, ?, ?, ?)"
_UNLIST = "DELETE FROM listed_tasks WHERE run_id = ? AND step = ?"
_OF_TASK = "run_id = ?1 AND step = ?2 AND attempts = ?3 AND replies = ?4"
_COMMENT = f"""
    INSERT INTO task_comments(run_id, step, attempts, replies, number, at, person, text)
    SELECT ?1, ?2, ?3, ?4, (SELECT count(*) FROM task_comments WHERE {_OF_TASK}), ?5, ?6, ?7 FROM runs
    WHERE id = ?1 AND (SELECT count(*) FROM task_comments WHERE {_OF_TASK}) < ?8
"""  # noqa: S608 - as above
_COMMENTS = f"SELECT at, person, text FROM task_comments WHERE {_OF_TASK} ORDER BY number"  # noqa: S608 - as above


class SqliteHumanTaskReads(SqliteReads):
    async def page(
        self, where: ListedTaskFilter, *, limit: int, after: WaitPosition | None = None
    ) -> list[WaitingStep]:
        order = {"order": "since" if where.overdue_at is None else "due"}
        conditions: list[str] = []
        values: list[Value] = []
        if after is not None:
            conditions.append(_AFTER % order)
            values += [after.since, after.run_id, after.step]
        if where.overdue_at is not None:
            conditions.append("listed_tasks.due < ?")
            values.append(where.overdue_at)
        if where.kind is not None:
            conditions.append("steps.waiting_kind = ?")
            values.append(where.kind)
        if where.workflow is not None:
            conditions.append(OF_WORKFLOW)
            values += [where.workflow, where.workflow]
        asked = "".join(f" AND {condition}" for condition in conditions)
        sql = f"{_LISTED % order}{asked}%s{_ORDER % order}"
        if where.people is None:
            return [waiting_step(row[1:]) for row in rows(self._db, sql % "", (*values, limit))]
        mine = " AND listed_tasks.person = ?"
        found = {
            (row[0], row[2], row[3]): row
            for person in where.people
            for row in rows(self._db, sql % mine, (*values, person, limit))
        }
        return [waiting_step(found[place][1:]) for place in sorted(found)[:limit]]

    async def comments(self, key: HumanTaskKey) -> list[TaskComment]:
        return [task_comment(row) for row in rows(self._db, _COMMENTS, key)]


class SqliteHumanTaskWrites(SqliteWrites):
    __slots__ = ()

    async def list(self, tasks: Sequence[ListedTask]) -> None:
        await self.unlist([(task.run_id, task.step) for task in tasks])
        execute_many(self._db, _LIST, listed_values(tasks))

    async def unlist(self, places: Sequence[tuple[RunId, str]]) -> None:
        execute_many(self._db, _UNLIST, places)

    async def comment(self, key: HumanTaskKey, comment: TaskComment, *, most: int) -> bool:
        return bool(execute(self._db, _COMMENT, (*key, comment.at, comment.by, comment.text, most)))
