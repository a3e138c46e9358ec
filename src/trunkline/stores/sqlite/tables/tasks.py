"""Tasks: what the bridge has accepted, who has claimed it, and what became of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

import apsw
import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.machine.state import FINAL_RUN_STATUSES
from trunkline.messages import TaskKey
from trunkline.stores.agent_limits import earlier
from trunkline.stores.payloads import pieces_in
from trunkline.stores.port.tasks import ClaimedTask, QueuedTask, ReclaimedTasks, StoppedTask, TaskAnswer
from trunkline.stores.rows.tasks import CLAIM_PAYLOAD, answer_values, claimed_task, key_of, run_of
from trunkline.stores.sqlite.cache import NOT_KNOWN, CacheChanges
from trunkline.stores.sqlite.database.group_base import SqliteWrites
from trunkline.stores.sqlite.database.payloads import SqlitePayloads
from trunkline.stores.sqlite.database.statements import (
    Row,
    Value,
    changes_of_many,
    execute,
    execute_many,
    first,
    query_many,
    rows,
    run_statements,
)
from trunkline.stores.sqlite.tables.agents.agent_limits import ClaimBudget
from trunkline.stores.sqlite.tables.deferred_tasks import CAN_BE_CALLED, SLOTS, DeferredTasks
from trunkline.stores.sqlite.tables.run_lists import UNFINISHED

_CLAIM_COLUMNS = "task_id, attempt, payload, epoch, remote_task_id, context_id, deadline, called_at, polls"

# The distinct agents of the queue by skipping from one to the next: the queue's length does not matter. First the
# one whose task has waited longest.
_QUEUED_AGENTS = f"""
    WITH RECURSIVE queued(agent) AS (
        SELECT min(agent) FROM tasks WHERE status = 'queued'
        UNION ALL
        SELECT (SELECT min(agent) FROM tasks WHERE status = 'queued' AND agent > queued.agent)
        FROM queued WHERE queued.agent IS NOT NULL
    )
    SELECT queued.agent, agents.options, {SLOTS},
        (SELECT count(*) FROM tasks WHERE status IN ('claimed', 'remote') AND tasks.agent = queued.agent)
    FROM queued LEFT JOIN agents ON agents.name = queued.agent WHERE queued.agent IS NOT NULL
    ORDER BY (SELECT min(id) FROM tasks WHERE status = 'queued' AND tasks.agent = queued.agent)
"""  # noqa: S608 - as above
# The pools as a JSON array, or NULL: all of them.
_IN_POOLS = "(?4 IS NULL OR EXISTS (SELECT 1 FROM json_each(?4) WHERE json_each.value IS tasks.pool))"
_CLAIM_QUEUED = f"""
    UPDATE tasks SET status = 'claimed', owner = ?1, epoch = epoch + 1 WHERE id IN
        (SELECT id FROM tasks WHERE status = 'queued' AND agent = ?2 AND {_IN_POOLS} ORDER BY id LIMIT ?3)
    RETURNING {_CLAIM_COLUMNS}
"""  # noqa: S608 - as above
# Its run has ended, and its owner may not know it.
_UNWANTED = f"EXISTS (SELECT 1 FROM runs WHERE runs.id = tasks.run_id AND runs.status NOT IN ({UNFINISHED}))"  # noqa: S608 - as above
_CLAIM_DUE = f"""
    UPDATE tasks SET status = 'claimed', owner = ?1, epoch = epoch + 1, poll_at = NULL,
        stopping = iif({_UNWANTED}, 1, stopping)
    WHERE id IN
        (SELECT id FROM tasks WHERE status = 'remote' AND poll_at <= ?2 AND {_IN_POOLS} AND {CAN_BE_CALLED}
            ORDER BY poll_at LIMIT ?3)
    RETURNING {_CLAIM_COLUMNS}
"""  # noqa: S608 - as above
_NEXT_POLL = f"""
    SELECT poll_at FROM tasks WHERE status = 'remote' AND {CAN_BE_CALLED} ORDER BY poll_at LIMIT 1
"""  # noqa: S608 - as above

# Claimed by an owner that is gone. In the words of the index of busy tasks: without them SQLite would read every task
# that there ever was, at every start.
_LEFT_BEHIND = "status = 'claimed' AND status IN ('claimed', 'remote') AND owner <> ?1"
# What the agent has taken stays claimed until the agent has been told.
_END_STOPPED = f"""
    UPDATE tasks SET status = CASE WHEN remote_task_id IS NULL THEN 'done' ELSE 'claimed' END,
        owner = ?1, epoch = epoch + 1
    WHERE {_LEFT_BEHIND} AND stopping = 1
    RETURNING {_CLAIM_COLUMNS}
"""  # noqa: S608 - as above
# What the agent has taken is asked for, never sent again.
_ASK_AGAIN = f"""
    UPDATE tasks SET status = 'remote', poll_at = ?2 WHERE {_LEFT_BEHIND} AND remote_task_id IS NOT NULL
"""  # noqa: S608 - as above
# Owner and epoch stay: the caller may still deliver the answer.
_IN_DOUBT = f"""
    UPDATE tasks SET status = 'in_doubt' WHERE {_LEFT_BEHIND} AND at_most_once = 1 RETURNING {_CLAIM_COLUMNS}
"""  # noqa: S608 - as above
# In the words of the index of busy tasks, as above.
_CLAIMED = f"""
    SELECT {_CLAIM_COLUMNS} FROM tasks
    WHERE status = 'claimed' AND status IN ('claimed', 'remote') AND owner = ?1
        AND (stopping = 1 OR {_UNWANTED}) = ?2
"""  # noqa: S608 - as above
_QUEUE_AGAIN = f"UPDATE tasks SET status = 'queued' WHERE {_LEFT_BEHIND}"  # noqa: S608 - as above
# A task that is to end stays with its owner, to tell the agent: it is not polled any more. An agent that has sent a
# push notification meanwhile is polled at once: see `poll_soon`.
_ANSWER = """
    UPDATE tasks SET
        status = CASE ?4 WHEN 'done' THEN 'done' WHEN 'claimed' THEN status
            ELSE iif(stopping = 1, 'claimed', 'remote') END,
        poll_at = CASE ?4 WHEN 'claimed' THEN poll_at ELSE min(?5, coalesce(poll_at, ?5)) END,
        polls = ?6, deadline = ?7, result = coalesce(?8, result), remote_task_id = coalesce(?9, remote_task_id),
        context_id = coalesce(?10, context_id), called_at = coalesce(called_at, ?11), ended_at = ?12, outcome = ?13,
        error_code = ?14, payload = coalesce(?15, payload)
    WHERE task_id = ?1 AND attempt = ?2 AND epoch = ?3 AND owner = ?16 AND status IN ('claimed', 'in_doubt')
"""
_RESULTS = """
    SELECT task_id, attempt, result FROM tasks WHERE task_id = ? AND attempt = ? AND result IS NOT NULL
"""
_GOING_ON = f"SELECT id FROM runs WHERE id = ? AND status IN ({UNFINISHED})"  # noqa: S608 - as above
_TOMBSTONE = """
    INSERT INTO tasks(task_id, attempt, run_id, agent, status, at_most_once, payload)
    VALUES (?, ?, ?, '', 'done', 0, x'')
"""
_STATUS_OF = f"SELECT status, {_CLAIM_COLUMNS} FROM tasks WHERE task_id = ? AND attempt = ?"  # noqa: S608 - as above
_END_QUEUED = "UPDATE tasks SET status = 'done' WHERE task_id = ? AND attempt = ?"
_END_CLAIMED = "UPDATE tasks SET stopping = 1 WHERE task_id = ? AND attempt = ?"
_CLAIM_TO_END = """
    UPDATE tasks SET status = 'claimed', stopping = 1, owner = ?, epoch = epoch + 1 WHERE task_id = ? AND attempt = ?
"""
# A claimed task has no time to be polled at, unless a push notification has come for it.
_POLL_SOON = """
    UPDATE tasks SET poll_at = min(coalesce(poll_at, ?1), ?1)
    WHERE task_id = ?2 AND attempt = ?3 AND status IN ('claimed', 'remote')
"""


class SqliteTaskWrites(SqliteWrites):
    __slots__ = ("_changes", "_held", "_next_begin", "_payloads")

    def __init__(
        self,
        db: apsw.Connection,
        now: Instant,
        changes: CacheChanges,
        held: DeferredTasks,
        payloads: SqlitePayloads,
    ) -> None:
        # Not by `super().__init__`: every transaction makes one.
        self._db, self._now = db, now
        self._changes = changes
        self._held = held
        self._payloads = payloads
        # When a task may be claimed that its agent's limits have held back.
        self._next_begin: Instant | None = None

    async def put(self, queued: Sequence[QueuedTask]) -> list[bytes]:
        # The tasks of a run that has a transition in this transaction are its own and new: nothing to look up.
        statuses = self._changes.statuses
        fresh = [item for item in queued if item.task.run_id in statuses]
        known: dict[TaskKey, bytes] = {}
        if len(fresh) < len(queued):
            others = [item for item in queued if item.task.run_id not in statuses]
            going_on = self._unfinished({item.task.run_id for item in others})
            others = [item for item in others if item.task.run_id in going_on]
            self._held.write()
            known = self._results([key_of(item) for item in others])
            self._held.put(others)
        self._held.put(
            [item for item in fresh if statuses[RunId(item.task.run_id)][0] not in FINAL_RUN_STATUSES]
        )
        return list(known.values())

    def _unfinished(self, run_ids: Collection[str]) -> set[str]:
        return {row[0] for row in query_many(self._db, _GOING_ON, [(run_id,) for run_id in run_ids])}

    async def claim(
        self, owner: str, limit: int, pools: Collection[str | None] | None = None
    ) -> list[ClaimedTask]:
        wanted = None if pools is None else encode(list(pools)).decode()
        due: list[ClaimedTask] = []
        if (first_poll := self._changes.no_poll_before) is not None and first_poll <= self._now:
            due = await self._claims(rows(self._db, _CLAIM_DUE, (owner, self._now, limit, wanted)))
            self._changes.no_poll_before = self._first_poll()
        room = limit - len(due)
        budget = ClaimBudget(self._db, self._now)
        queued = None if pools is not None else await self._held.claim(owner, room, budget)
        if queued is None:
            await self._held.write_all()
            queued = budget.take(await self._claims(self._claim_queued(owner, room, wanted, budget)))
        self._next_begin = budget.write()
        return due + queued

    async def _claims(self, found: Iterable[Row]) -> list[ClaimedTask]:
        """Claims as they were read. Large ones are read and decoded in a thread."""
        claimed = list(found)
        if not claimed:
            return []
        wanted = pieces_in(row[CLAIM_PAYLOAD] for row in claimed)
        return await run_statements(lambda: self._claims_now(claimed), sum(wanted.values()))

    def _claims_now(self, found: Sequence[Row]) -> list[ClaimedTask]:
        wanted = pieces_in(row[CLAIM_PAYLOAD] for row in found)
        bodies = self._payloads.read_now(wanted) if wanted else {}
        return [claimed_task(row, bodies) for row in found]

    def _claim_queued(self, owner: str, limit: int, wanted: str | None, budget: ClaimBudget) -> list[Row]:
        claimed: list[Row] = []
        # An agent that is not registered has no slots; its tasks go on to fail with that reason.
        free = {
            agent: min(limit if most is None else most - busy, budget.left(agent, options))
            for agent, options, most, busy in list(rows(self._db, _QUEUED_AGENTS))
        }
        while free and (room := limit - len(claimed)) > 0:
            # Equal shares: a long queue for one agent does not keep the others waiting.
            share = max(1, room // len(free))
            for agent, slots in list(free.items()):
                most = min(share, slots, limit - len(claimed))
                taken = list(rows(self._db, _CLAIM_QUEUED, (owner, agent, most, wanted))) if most > 0 else []
                claimed += taken
                free[agent] = slots - len(taken)
                if len(taken) < share:
                    del free[agent]
                    if len(taken) >= most:
                        budget.hold_back(agent)
        return claimed

    async def stopping(self, owner: str) -> list[ClaimedTask]:
        self._held.write()
        return await self._claims(rows(self._db, _CLAIMED, (owner, 1)))

    async def held(self, owner: str) -> list[ClaimedTask]:
        self._held.write()
        return await self._claims(rows(self._db, _CLAIMED, (owner, 0)))

    async def stop(self, owner: str, keys: Sequence[TaskKey]) -> list[StoppedTask]:
        self._held.write()
        stopped = (self._stop(owner, key) for key in keys)
        return [task for task in stopped if task is not None]

    def _stop(self, owner: str, key: TaskKey) -> StoppedTask | None:
        row = first(self._db, _STATUS_OF, (key.task_id, key.attempt))
        if row is None:
            execute(self._db, _TOMBSTONE, (key.task_id, key.attempt, run_of(key.task_id)))
            return None
        was, *columns = row
        if columns[2] == b"":  # a tombstone
            return None
        (claim,) = self._claims_now([tuple(columns)])
        if was == "queued":
            execute(self._db, _END_QUEUED, (key.task_id, key.attempt))
        elif was == "claimed":
            execute(self._db, _END_CLAIMED, (key.task_id, key.attempt))
        elif was == "remote":
            execute(self._db, _CLAIM_TO_END, (owner, key.task_id, key.attempt))
            claim = msgspec.structs.replace(claim, epoch=claim.epoch + 1)
        return StoppedTask(claim=claim, was=was)

    async def write_answers(self, owner: str, answers: Sequence[TaskAnswer]) -> set[TaskKey]:
        self._held.write()
        if any(answer.poll_at is not None for answer in answers):
            # Perhaps at once: a push notification may have come while the task was claimed.
            self._changes.no_poll_before = NOT_KNOWN
        # An update writes the whole row again, with the input of the task.
        size_bytes = 0
        for answer in answers:
            size_bytes += answer.task_bytes
        written = await run_statements(
            lambda: changes_of_many(
                self._db, _ANSWER, [(*answer_values(answer), owner) for answer in answers]
            ),
            size_bytes,
        )
        return {answer.key for answer, ours in zip(answers, written, strict=True) if not ours}

    async def reclaim(self, owner: str, grace: timedelta = timedelta(0)) -> ReclaimedTasks:
        # The lock on the file says which process lives: there is nothing to wait for.
        del grace
        self._held.write()
        self._changes.no_poll_before = NOT_KNOWN
        stopped = await self._claims(rows(self._db, _END_STOPPED, (owner,)))
        execute(self._db, _ASK_AGAIN, (owner, self._now))
        in_doubt = await self._claims(rows(self._db, _IN_DOUBT, (owner,)))
        execute(self._db, _QUEUE_AGAIN, (owner,))
        return ReclaimedTasks(in_doubt=in_doubt, stopped=stopped)

    async def next_poll(self) -> Instant | None:
        if self._changes.no_poll_before == NOT_KNOWN:
            self._changes.no_poll_before = self._first_poll()
        return earlier(self._changes.no_poll_before, self._next_begin)

    def _first_poll(self) -> Instant | None:
        row = first(self._db, _NEXT_POLL)
        return None if row is None else row[0]

    async def poll_soon(self, key: TaskKey) -> bool:
        self._held.write()
        self._changes.expect_poll(self._now)
        return execute(self._db, _POLL_SOON, (self._now, key.task_id, key.attempt)) == 1

    async def results(self, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
        self._held.write()
        return self._results(keys)

    def _results(self, keys: Collection[TaskKey]) -> dict[TaskKey, bytes]:
        found = query_many(self._db, _RESULTS, key_values(keys))
        return {TaskKey(task_id, attempt): result for task_id, attempt, result in found}

    async def keep_results(self, results: Mapping[TaskKey, bytes]) -> None:
        self._held.write()
        execute_many(
            self._db,
            "UPDATE tasks SET result = ? WHERE task_id = ? AND attempt = ?",
            [(result, key.task_id, key.attempt) for key, result in results.items()],
        )


def key_values(keys: Collection[TaskKey]) -> list[tuple[Value, ...]]:
    return [(key.task_id, key.attempt) for key in keys]


class SqliteLeaseWrites:
    """The process that owns the file has the lease until it ends."""

    __slots__ = ()

    async def hold(self, owner: str, lasts: timedelta, process: str = "") -> None:
        """Nothing to store."""

    async def release(self, owner: str) -> None:
        """Nothing to store: the next process takes what `owner` still has."""
