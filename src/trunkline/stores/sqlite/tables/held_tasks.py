"""
Tasks that the transaction under way has made.

Most are claimed before it ends. Held back until then, such a task is written once, as claimed, instead of being
queued, found, changed and read again. Whatever else may look at tasks writes those that are held first.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from trunkline.stores.base import ClaimedTask, QueuedTask, TaskKey
from trunkline.stores.sqlite.database.statements import changes_of_many, first
from trunkline.stores.sqlite.tables.agent_limits import Restraint
from trunkline.stores.sqlite.tables.tasks import SLOTS, put_tasks

_INSERT_CLAIMED = """
    INSERT INTO tasks(task_id, attempt, run_id, agent, pool, status, at_most_once, payload, owner, epoch)
    VALUES (?, ?, ?, ?, ?, 'claimed', ?, ?, ?, 1) ON CONFLICT(task_id, attempt) DO NOTHING
"""
_SLOTS = f"""
    SELECT {SLOTS} - (SELECT count(*) FROM tasks WHERE status IN ('claimed', 'remote') AND agent = ?1), options
    FROM agents WHERE name = ?1
"""  # noqa: S608 - constants only


class FreshTasks:
    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._held: list[QueuedTask] = []

    def put(self, tasks: Sequence[QueuedTask]) -> None:
        self._held.extend(tasks)

    def write(self) -> None:
        """Puts those that are held into the queue."""
        if self._held:
            put_tasks(self._db, self._held)
            self._held = []

    def claim(self, owner: str, limit: int, restraint: Restraint) -> list[ClaimedTask] | None:
        """
        Writes and claims those that are held, as far as their agents have room.

        None, and they are in the queue: others have waited longer, or there is not room for all agents alike.
        """
        if len(self._held) > limit or self._others_wait():
            self.write()
            return None
        claimable = self._within_slots(restraint)
        written = changes_of_many(
            self._db,
            _INSERT_CLAIMED,
            [
                (
                    item.task.task_id,
                    item.task.attempt,
                    item.task.run_id,
                    item.task.agent,
                    item.task.pool,
                    item.task.at_most_once,
                    item.payload,
                    owner,
                )
                for item in claimable
            ],
        )
        self.write()
        # One that was there already stays as it is.
        return restraint.take(
            [
                ClaimedTask(key=TaskKey(item.task.task_id, item.task.attempt), task=item.task, epoch=1)
                for item, is_new in zip(claimable, written, strict=True)
                if is_new
            ]
        )

    def _others_wait(self) -> bool:
        return first(self._db, "SELECT 1 FROM tasks WHERE status = 'queued' LIMIT 1") is not None

    def _within_slots(self, restraint: Restraint) -> list[QueuedTask]:
        """Takes out of those that are held what can be claimed now."""
        free: dict[str, int] = {}
        claimable: list[QueuedTask] = []
        left: list[QueuedTask] = []
        for item in self._held:
            agent = item.task.agent
            if agent not in free:
                free[agent] = self._slots_of(agent, restraint)
            free[agent] -= 1
            (claimable if free[agent] >= 0 else left).append(item)
        self._held = left
        for agent in {item.task.agent for item in left}:
            restraint.hold_back(agent)
        return claimable

    def _slots_of(self, agent: str, restraint: Restraint) -> int:
        # An agent that is not registered has no slots; its tasks go on to fail with that reason.
        row = first(self._db, _SLOTS, (agent,))
        if row is None:
            return len(self._held)
        slots, options = row
        return min(slots, restraint.left(agent, options))
