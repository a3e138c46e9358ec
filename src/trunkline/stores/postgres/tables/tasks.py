"""Tasks: what the bridges have accepted, and what became of it. Which bridge may take which is in `task_claims`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from trunkline.clock import Instant
from trunkline.messages import TaskKey
from trunkline.stores.port.tasks import ClaimedTask, QueuedTask, StoppedTask, TaskAnswer, TaskStatus
from trunkline.stores.postgres.database.payloads import PostgresPayloads
from trunkline.stores.postgres.database.session import Session, columns
from trunkline.stores.postgres.database.text_encoding import LOWEST_UUID, as_uuid
from trunkline.stores.postgres.tables.deferred_writes import DeferredWrites
from trunkline.stores.postgres.tables.run_lists import FINAL
from trunkline.stores.postgres.tables.task_claims import (
    CLAIM_COLUMNS,
    PostgresTaskClaims,
    key_columns,
    key_of,
)
from trunkline.stores.rows import tasks as task_rows

# The rows of the keys in $1 and $2, in their order.
_OF_KEYS = """
    unnest($1::text[], $2::int[]) AS wanted(task_id, attempt)
        JOIN tasks ON tasks.task_id = wanted.task_id AND tasks.attempt = wanted.attempt
"""

_PUT = f"""
    INSERT INTO tasks(task_id, attempt, run_id, agent, pool, status, at_most_once, payload)
    SELECT new.task_id, new.attempt, new.run_id, new.agent, new.pool, 'queued', new.at_most_once, new.payload
    FROM unnest($1::text[], $2::int[], $3::uuid[], $4::text[], $5::text[], $6::smallint[], $7::bytea[])
        AS new(task_id, attempt, run_id, agent, pool, at_most_once, payload)
        JOIN runs ON runs.id = new.run_id AND runs.status NOT IN {FINAL}
    ON CONFLICT (task_id, attempt) DO NOTHING
    RETURNING task_id, attempt
"""  # noqa: S608 - constants only
# None for a run that is gone: its tasks are no longer accepted, and the tombstone would never be deleted.
_TOMBSTONES = """
    INSERT INTO tasks(task_id, attempt, run_id, agent, status, payload)
    SELECT new.task_id, new.attempt, new.run_id, '', 'done', ''
    FROM unnest($1::text[], $2::int[], $3::uuid[]) AS new(task_id, attempt, run_id) JOIN runs ON runs.id = new.run_id
    ON CONFLICT (task_id, attempt) DO NOTHING
    RETURNING task_id, attempt
"""
_LOCK = f"""
    SELECT tasks.id, tasks.status, {CLAIM_COLUMNS} FROM {_OF_KEYS}
    ORDER BY wanted.task_id, wanted.attempt FOR UPDATE OF tasks
"""  # noqa: S608 - as above
_STOP = """
    UPDATE tasks SET
        status = CASE status WHEN 'queued' THEN 'done' ELSE 'claimed' END,
        stopping = CASE status WHEN 'queued' THEN 0 ELSE 1 END,
        owner = CASE status WHEN 'remote' THEN $2 ELSE owner END,
        epoch = CASE status WHEN 'remote' THEN epoch + 1 ELSE epoch END
    WHERE id = ANY($1::bigint[]) AND status IN ('queued', 'claimed', 'remote')
"""
# A task that is to end stays with its owner, to tell the agent: it is not polled any more.
_ANSWER = """
    UPDATE tasks SET status = CASE
            WHEN new.status = 'claimed' THEN tasks.status
            WHEN new.status = 'remote' AND stopping = 1 THEN 'claimed'
            ELSE new.status
        END,
        poll_at = CASE
            WHEN new.status = 'claimed' THEN tasks.poll_at
            WHEN new.poll_at IS NOT NULL THEN least(new.poll_at, tasks.poll_at)
        END,
        polls = new.polls, deadline = new.deadline,
        result = coalesce(new.result, tasks.result),
        remote_task_id = coalesce(new.remote_task_id, tasks.remote_task_id),
        context_id = coalesce(new.context_id, tasks.context_id),
        called_at = coalesce(tasks.called_at, new.called_at), ended_at = new.ended_at,
        outcome = new.outcome, error_code = new.error_code, payload = coalesce(new.payload, tasks.payload)
    FROM unnest($2::text[], $3::int[], $4::bigint[], $5::text[], $6::bigint[], $7::int[], $8::bigint[], $9::bytea[],
        $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::text[], $15::text[],
        $16::bytea[])
        AS new(task_id, attempt, epoch, status, poll_at, polls, deadline, result, remote_task_id, context_id,
            called_at, ended_at, outcome, error_code, payload)
    WHERE tasks.task_id = new.task_id AND tasks.attempt = new.attempt AND tasks.epoch = new.epoch
        AND tasks.owner = $1 AND tasks.status IN ('claimed', 'in_doubt')
    RETURNING tasks.task_id, tasks.attempt
"""
_RESULTS = f"""
    SELECT tasks.task_id, tasks.attempt, tasks.result FROM {_OF_KEYS} WHERE tasks.result IS NOT NULL
"""  # noqa: S608 - as above
_KEEP_RESULTS = """
    UPDATE tasks SET result = new.result
    FROM unnest($1::text[], $2::int[], $3::bytea[]) AS new(task_id, attempt, result)
    WHERE tasks.task_id = new.task_id AND tasks.attempt = new.attempt
"""
_POLL_SOON = """
    UPDATE tasks SET poll_at = least(poll_at, $3)
    WHERE task_id = $1 AND attempt = $2 AND status IN ('claimed', 'remote')
"""


class PostgresTaskWrites(PostgresTaskClaims):
    __slots__ = ("_deferred",)

    def __init__(
        self, db: Session, now: Instant, deferred: DeferredWrites, payloads: PostgresPayloads
    ) -> None:
        super().__init__(db, now, payloads)
        self._deferred = deferred

    async def put(self, queued: Sequence[QueuedTask]) -> list[bytes]:
        await self._deferred.write()
        # In the order of keys: two bridges that accept the same tasks do not wait for one another.
        ordered = sorted(
            (item for item in queued if as_uuid(item.task.run_id)),
            key=lambda item: (item.task.task_id, item.task.attempt),
        )
        if not ordered:
            return []
        values = [task_rows.queued_task_values(item) for item in ordered]
        rows, pieces = await self._payloads.split(values, task_rows.TASK_PAYLOADS)
        inserted = {key_of(row) for row in await self._db.rows(_PUT, *columns(rows, 7))}
        written = [number for number in pieces if task_rows.key_of(ordered[number]) in inserted]
        await self._payloads.put((ordered[number].task.run_id, pieces[number]) for number in written)
        known = {task_rows.key_of(item) for item in ordered} - inserted
        return list((await self._results(known)).values())

    async def stop(self, owner: str, keys: Sequence[TaskKey]) -> list[StoppedTask]:
        self._forget_polls()
        wanted = sorted({(key.task_id, key.attempt) for key in keys})
        if not wanted:
            return []
        # First of all: a transaction that puts such a task at this moment is waited for, and its row is then seen
        # below.
        rows = [(task_id, attempt, _run_of(task_id)) for task_id, attempt in wanted]
        unknown = {key_of(row) for row in await self._db.rows(_TOMBSTONES, *columns(rows, 3))}
        known = [key for key in wanted if TaskKey(*key) not in unknown]
        if not known:
            return []
        # One without a payload is a tombstone.
        found = [row for row in await self._db.rows(_LOCK, *columns(known, 2)) if row[4]]
        await self._db.execute(_STOP, [row[0] for row in found], owner)
        claims = await self.claims_of([row[2:] for row in found])
        return [_stopped(row[1], claim) for row, claim in zip(found, claims, strict=True)]

    async def write_answers(self, owner: str, answers: Sequence[TaskAnswer]) -> set[TaskKey]:
        self._forget_polls()
        if not answers:
            return set()
        rows = [
            task_rows.answer_values(answer)
            for answer in sorted(answers, key=lambda answer: (answer.key.task_id, answer.key.attempt))
        ]
        written = {key_of(row) for row in await self._db.rows(_ANSWER, owner, *columns(rows, 15))}
        return {answer.key for answer in answers} - written

    async def poll_soon(self, key: TaskKey) -> bool:
        self._forget_polls()
        return await self._db.execute(_POLL_SOON, key.task_id, key.attempt, self._now) == 1

    async def results(self, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
        await self._deferred.write()
        return await self._results(keys)

    async def _results(self, keys: Collection[TaskKey]) -> dict[TaskKey, bytes]:
        if not keys:
            return {}
        found = await self._db.rows(_RESULTS, *key_columns(keys))
        return {key_of(row): row[2] for row in found}

    async def keep_results(self, results: Mapping[TaskKey, bytes]) -> None:
        await self._deferred.write()
        rows = sorted((key.task_id, key.attempt, result) for key, result in results.items())
        if rows:
            await self._db.execute(_KEEP_RESULTS, *columns(rows, 3))


def _stopped(was: TaskStatus, claim: ClaimedTask) -> StoppedTask:
    if was == "remote":
        claim = msgspec.structs.replace(claim, epoch=claim.epoch + 1)
    return StoppedTask(claim=claim, was=was)


def _run_of(task_id: str) -> str:
    return as_uuid(task_rows.run_of(task_id)) or LOWEST_UUID
