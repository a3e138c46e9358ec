"""Tasks: what the bridge has taken in, who holds it, and what became of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import apsw
import msgspec

from trunkline.clock import Instant
from trunkline.jsontypes import encode
from trunkline.messages import AgentTask
from trunkline.stores.base import ClaimedTask, QueuedTask, ReclaimedTasks, StoppedTask, TaskAnswer, TaskKey
from trunkline.stores.sqlite.database.statements import (
    Row,
    Value,
    changes_of_many,
    execute,
    execute_many,
    first,
    query_many,
    rows,
)
from trunkline.stores.sqlite.tables.agent_limits import Restraint
from trunkline.stores.sqlite.tables.runs import UNFINISHED

_tasks: msgspec.json.Decoder[AgentTask] = msgspec.json.Decoder(AgentTask)

_CLAIM_COLUMNS = "task_id, attempt, payload, epoch, remote_task_id, context_id, deadline, called_at, polls"

# Nobody can call such an agent, or ask it: its secret did not come along when the store was moved.
_CANNOT_BE_CALLED = "agents.auth_type <> 'none' AND agents.secret IS NULL"
CAN_BE_CALLED = f"""
    NOT EXISTS (SELECT 1 FROM agents WHERE agents.name = tasks.agent AND {_CANNOT_BE_CALLED})
"""  # noqa: S608 - constants of this module
SLOTS = f"CASE WHEN {_CANNOT_BE_CALLED} THEN 0 ELSE agents.max_concurrency END"

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
# Its run has ended, and whoever was to hear of that may not have.
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

# Claimed by somebody who is gone. In the words of the index of busy tasks: without them SQLite would read every task
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
# Owner and epoch stay: whoever called it may still bring the answer.
_DOUBT = f"""
    UPDATE tasks SET status = 'in_doubt' WHERE {_LEFT_BEHIND} AND at_most_once = 1 RETURNING {_CLAIM_COLUMNS}
"""  # noqa: S608 - as above
# In the words of the index of busy tasks, as above.
_CLAIMED = f"""
    SELECT {_CLAIM_COLUMNS} FROM tasks
    WHERE status = 'claimed' AND status IN ('claimed', 'remote') AND owner = ?1
        AND (stopping = 1 OR {_UNWANTED}) = ?2
"""  # noqa: S608 - as above
_QUEUE_AGAIN = f"UPDATE tasks SET status = 'queued' WHERE {_LEFT_BEHIND}"  # noqa: S608 - as above


def put_tasks(db: apsw.Connection, tasks: Sequence[QueuedTask]) -> None:
    execute_many(
        db,
        "INSERT INTO tasks(task_id, attempt, run_id, agent, pool, status, at_most_once, payload)"
        " VALUES (?, ?, ?, ?, ?, 'queued', ?, ?) ON CONFLICT(task_id, attempt) DO NOTHING",
        (
            (
                item.task.task_id,
                item.task.attempt,
                item.task.run_id,
                item.task.agent,
                item.task.pool,
                item.task.at_most_once,
                item.payload,
            )
            for item in tasks
        ),
    )


def stored_results(db: apsw.Connection, keys: Collection[TaskKey]) -> dict[TaskKey, bytes]:
    found = query_many(
        db,
        "SELECT task_id, attempt, result FROM tasks WHERE task_id = ? AND attempt = ? AND result IS NOT NULL",
        key_values(keys),
    )
    return {TaskKey(task_id, attempt): result for task_id, attempt, result in found}


def keep_results(db: apsw.Connection, results: Mapping[TaskKey, bytes]) -> None:
    execute_many(
        db,
        "UPDATE tasks SET result = ? WHERE task_id = ? AND attempt = ?",
        [(result, key.task_id, key.attempt) for key, result in results.items()],
    )


def drop_results(db: apsw.Connection, keys: Collection[TaskKey]) -> None:
    execute_many(db, "UPDATE tasks SET result = NULL WHERE task_id = ? AND attempt = ?", key_values(keys))


def key_values(keys: Collection[TaskKey]) -> list[tuple[Value, ...]]:
    return [(key.task_id, key.attempt) for key in keys]


def claim_due_tasks(
    db: apsw.Connection, owner: str, now: Instant, limit: int, pools: Collection[str | None] | None
) -> list[ClaimedTask]:
    return [_claim(row) for row in rows(db, _CLAIM_DUE, (owner, now, limit, _json_of(pools)))]


def claim_queued_tasks(
    db: apsw.Connection,
    owner: str,
    limit: int,
    pools: Collection[str | None] | None,
    restraint: Restraint,
) -> list[ClaimedTask]:
    claimed: list[ClaimedTask] = []
    wanted = _json_of(pools)
    # An agent that is not registered has no slots; its tasks go on to fail with that reason.
    free = {
        agent: min(limit if most is None else most - busy, restraint.left(agent, options))
        for agent, options, most, busy in list(rows(db, _QUEUED_AGENTS))
    }
    while free and (room := limit - len(claimed)) > 0:
        # Equal shares: a long queue for one agent does not keep the others waiting.
        share = max(1, room // len(free))
        for agent, slots in list(free.items()):
            most = min(share, slots, limit - len(claimed))
            taken = list(rows(db, _CLAIM_QUEUED, (owner, agent, most, wanted))) if most > 0 else []
            claimed += restraint.take([_claim(row) for row in taken])
            free[agent] = slots - len(taken)
            if len(taken) < share:
                del free[agent]
                if len(taken) >= most:
                    restraint.hold_back(agent)
    return claimed


def _json_of(pools: Collection[str | None] | None) -> str | None:
    return None if pools is None else encode(list(pools)).decode()


def stopping_tasks(db: apsw.Connection, owner: str) -> list[ClaimedTask]:
    return [_claim(row) for row in rows(db, _CLAIMED, (owner, 1))]


def held_tasks(db: apsw.Connection, owner: str) -> list[ClaimedTask]:
    return [_claim(row) for row in rows(db, _CLAIMED, (owner, 0))]


def _claim(row: Row) -> ClaimedTask:
    task_id, attempt, payload, epoch, remote_task_id, context_id, deadline, called_at, polls = row
    return ClaimedTask(
        key=TaskKey(task_id, attempt),
        task=_tasks.decode(payload),
        epoch=epoch,
        remote_task_id=remote_task_id,
        context_id=context_id,
        deadline=deadline,
        called_at=called_at,
        polls=polls,
    )


def stop_tasks(db: apsw.Connection, owner: str, keys: Sequence[TaskKey]) -> list[StoppedTask]:
    stopped = (_stop(db, owner, key) for key in keys)
    return [task for task in stopped if task is not None]


def _stop(db: apsw.Connection, owner: str, key: TaskKey) -> StoppedTask | None:
    row = first(
        db,
        f"SELECT status, {_CLAIM_COLUMNS} FROM tasks WHERE task_id = ? AND attempt = ?",  # noqa: S608 - constants only
        (key.task_id, key.attempt),
    )
    if row is None:
        execute(
            db,
            "INSERT INTO tasks(task_id, attempt, run_id, agent, status, at_most_once, payload)"
            " VALUES (?, ?, ?, '', 'done', 0, x'')",
            # A task's id begins with its run's id and a slash.
            (key.task_id, key.attempt, key.task_id.partition("/")[0]),
        )
        return None
    was, *columns = row
    if columns[2] == b"":  # a tombstone
        return None
    claim = _claim(tuple(columns))
    if was == "queued":
        execute(
            db,
            "UPDATE tasks SET status = 'done' WHERE task_id = ? AND attempt = ?",
            (key.task_id, key.attempt),
        )
    elif was == "claimed":
        execute(
            db, "UPDATE tasks SET stopping = 1 WHERE task_id = ? AND attempt = ?", (key.task_id, key.attempt)
        )
    elif was == "remote":
        execute(
            db,
            "UPDATE tasks SET status = 'claimed', stopping = 1, owner = ?, epoch = epoch + 1"
            " WHERE task_id = ? AND attempt = ?",
            (owner, key.task_id, key.attempt),
        )
        claim = msgspec.structs.replace(claim, epoch=claim.epoch + 1)
    return StoppedTask(claim=claim, was=was)


def write_answers(db: apsw.Connection, owner: str, answers: Sequence[TaskAnswer]) -> set[TaskKey]:
    written = changes_of_many(
        db,
        # What is to end stays with who has it, to tell the agent: nobody asks for it any more.
        "UPDATE tasks SET status = CASE ? WHEN 'done' THEN 'done' WHEN 'claimed' THEN status"
        " ELSE iif(stopping = 1, 'claimed', 'remote') END,"
        # An agent that has rung meanwhile is asked at once: see `ask_soon`.
        " poll_at = CASE ? WHEN 'claimed' THEN poll_at ELSE min(?, coalesce(poll_at, ?)) END,"
        " polls = ?, deadline = ?, result = coalesce(?, result),"
        " remote_task_id = coalesce(?, remote_task_id), context_id = coalesce(?, context_id),"
        " called_at = coalesce(called_at, ?), ended_at = ?, outcome = ?, error_code = ?"
        " WHERE task_id = ? AND attempt = ? AND epoch = ? AND owner = ? AND status IN ('claimed', 'in_doubt')",
        [
            (
                answer.new_status,
                answer.new_status,
                answer.poll_at,
                answer.poll_at,
                answer.polls,
                answer.deadline,
                answer.result,
                answer.remote_task_id,
                answer.context_id,
                answer.called_at,
                answer.ended_at,
                answer.outcome,
                answer.error_code,
                answer.key.task_id,
                answer.key.attempt,
                answer.epoch,
                owner,
            )
            for answer in answers
        ],
    )
    return {answer.key for answer, ours in zip(answers, written, strict=True) if not ours}


def reclaim_tasks(db: apsw.Connection, owner: str, now: Instant) -> ReclaimedTasks:
    stopped = [_claim(row) for row in rows(db, _END_STOPPED, (owner,))]
    execute(db, _ASK_AGAIN, (owner, now))
    in_doubt = [_claim(row) for row in rows(db, _DOUBT, (owner,))]
    execute(db, _QUEUE_AGAIN, (owner,))
    return ReclaimedTasks(in_doubt=in_doubt, stopped=stopped)


def ask_soon(db: apsw.Connection, key: TaskKey, now: Instant) -> bool:
    # A claimed task has no time to be asked at, unless somebody has rung for it.
    statement = (
        "UPDATE tasks SET poll_at = min(coalesce(poll_at, ?1), ?1)"
        " WHERE task_id = ?2 AND attempt = ?3 AND status IN ('claimed', 'remote')"
    )
    return execute(db, statement, (now, key.task_id, key.attempt)) == 1


def next_poll(db: apsw.Connection) -> Instant | None:
    row = first(db, _NEXT_POLL)
    return None if row is None else row[0]
