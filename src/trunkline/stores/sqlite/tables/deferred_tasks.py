"""
Tasks that the current transaction has put and not yet written.

Most are claimed before it ends. Held back until then, such a task is written once, as claimed, instead of being
queued, found, changed and read again. Every other statement that reads tasks writes those that are held first.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from trunkline.stores.payloads import split_rows
from trunkline.stores.port.tasks import ClaimedTask, QueuedTask
from trunkline.stores.rows.tasks import TASK_PAYLOADS, key_of, queued_task_values
from trunkline.stores.sqlite.database.payloads import SqlitePayloads
from trunkline.stores.sqlite.database.statements import changes_of_many, first, run_statements
from trunkline.stores.sqlite.tables.agents.agent_limits import ClaimBudget

# Such an agent cannot be called or polled: its secret was not copied when the store was moved.
_CANNOT_BE_CALLED = "agents.auth_type <> 'none' AND agents.secret IS NULL"
CAN_BE_CALLED = f"""
    NOT EXISTS (SELECT 1 FROM agents WHERE agents.name = tasks.agent AND {_CANNOT_BE_CALLED})
"""  # noqa: S608 - constants of this module
SLOTS = f"CASE WHEN {_CANNOT_BE_CALLED} THEN 0 ELSE agents.max_concurrency END"
_PUT = """
    INSERT INTO tasks(task_id, attempt, run_id, agent, pool, at_most_once, payload, status)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'queued') ON CONFLICT(task_id, attempt) DO NOTHING
"""
_INSERT_CLAIMED = """
    INSERT INTO tasks(task_id, attempt, run_id, agent, pool, at_most_once, payload, owner, status, epoch)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'claimed', 1) ON CONFLICT(task_id, attempt) DO NOTHING
"""
_SLOTS = f"""
    SELECT {SLOTS} - (SELECT count(*) FROM tasks WHERE status IN ('claimed', 'remote') AND agent = ?1), options
    FROM agents WHERE name = ?1
"""  # noqa: S608 - constants only


class DeferredTasks:
    __slots__ = ("_db", "_held", "_payloads")

    def __init__(self, db: apsw.Connection, payloads: SqlitePayloads) -> None:
        self._db = db
        self._payloads = payloads
        self._held: list[QueuedTask] = []

    def reset(self) -> None:
        """The database has gone back to a savepoint, before which nothing was held."""
        self._held = []

    def put(self, tasks: Sequence[QueuedTask]) -> None:
        self._held.extend(tasks)

    def write(self) -> None:
        """Puts those that are held into the queue."""
        if self._held:
            self._insert(_PUT, self._held)
            self._held = []

    async def write_all(self) -> None:
        """As `write`, without keeping the event loop from everything else if they are large."""
        if self._held:
            held, self._held = self._held, []
            size_bytes = sum(len(item.payload) for item in held)
            await run_statements(lambda: self._insert(_PUT, held), size_bytes)

    def _insert(self, sql: str, tasks: Sequence[QueuedTask], *more: str) -> list[bool]:
        values, pieces = split_rows([(*queued_task_values(item), *more) for item in tasks], TASK_PAYLOADS)
        written = changes_of_many(self._db, sql, values)
        for number in pieces:
            if written[number]:
                self._payloads.put(tasks[number].task.run_id, pieces[number])
        return written

    async def claim(self, owner: str, limit: int, budget: ClaimBudget) -> list[ClaimedTask] | None:
        """
        Write and claim those that are held, as far as their agents have free slots.

        None, and they are in the queue: others have waited longer, or there is not room for all of them.
        """
        if len(self._held) > limit or self._others_wait():
            await self.write_all()
            return None
        claimable = self._within_slots(budget)
        written = await run_statements(
            lambda: self._insert(_INSERT_CLAIMED, claimable, owner),
            sum(len(item.payload) for item in claimable),
        )
        await self.write_all()
        # One that was there already stays as it is.
        return budget.take(
            [
                ClaimedTask(key=key_of(item), task=item.task, epoch=1, payload_bytes=len(item.payload))
                for item, is_new in zip(claimable, written, strict=True)
                if is_new
            ]
        )

    def _others_wait(self) -> bool:
        return first(self._db, "SELECT 1 FROM tasks WHERE status = 'queued' LIMIT 1") is not None

    def _within_slots(self, budget: ClaimBudget) -> list[QueuedTask]:
        """Takes out of those that are held what can be claimed now."""
        free: dict[str, int] = {}
        claimable: list[QueuedTask] = []
        left: list[QueuedTask] = []
        for item in self._held:
            agent = item.task.agent
            if agent not in free:
                free[agent] = self._slots_of(agent, budget)
            free[agent] -= 1
            (claimable if free[agent] >= 0 else left).append(item)
        self._held = left
        for agent in {item.task.agent for item in left}:
            budget.hold_back(agent)
        return claimable

    def _slots_of(self, agent: str, budget: ClaimBudget) -> int:
        # An agent that is not registered has no slots; its tasks go on to fail with that reason.
        row = first(self._db, _SLOTS, (agent,))
        if row is None:
            return len(self._held)
        slots, options = row
        return min(slots, budget.left(agent, options))
