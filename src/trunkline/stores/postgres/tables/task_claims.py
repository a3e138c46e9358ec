"""
Which bridge may call an agent: leases, slots over all bridges, and the tasks of bridges that are gone.

Bridges do not wait for one another. While an agent has many free slots, any number of bridges claim from it at the
same moment, each no more than its share; with few left, one bridge at a time (`_LOOK`). A bridge that finds an agent
locked leaves it out and tries again soon.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from trunkline.clock import Instant, after
from trunkline.messages import TaskKey
from trunkline.stores.agent_limits import NO_LIMIT, CallAllowances, earlier, limiting
from trunkline.stores.payloads import pieces_in
from trunkline.stores.port.tasks import ClaimedTask, ReclaimedTasks
from trunkline.stores.postgres.database.group_base import PostgresWrites
from trunkline.stores.postgres.database.payloads import PostgresPayloads
from trunkline.stores.postgres.database.session import Column, Session, columns
from trunkline.stores.postgres.database.text_encoding import restored, restored_row
from trunkline.stores.postgres.tables.agents.agent_limits import try_to_lock_states, write_states
from trunkline.stores.postgres.tables.run_lists import FINAL
from trunkline.stores.rows import Row
from trunkline.stores.rows.tasks import CLAIM_PAYLOAD, claimed_task

CLAIM_COLUMNS = """
    tasks.task_id, tasks.attempt, tasks.payload, tasks.epoch, tasks.remote_task_id, tasks.context_id,
    tasks.deadline, tasks.called_at, tasks.polls
"""
# In the words of their indexes. The index of busy tasks, which has both, does not match these words: PostgreSQL would
# read all remote tasks in it to find a few that are claimed.
IS_CLAIMED = "(tasks.status = 'claimed') IS TRUE"
IS_REMOTE = "(tasks.status = 'remote') IS TRUE"
_HAS_LEASE = "EXISTS (SELECT 1 FROM leases WHERE owner = $1 AND until > $2)"
# Such an agent cannot be called or polled: its secret was not copied when the store was moved.
CANNOT_BE_CALLED = "agents.auth_type <> 'none' AND agents.secret IS NULL"
_CAN_BE_CALLED = f"""
    NOT EXISTS (SELECT 1 FROM agents WHERE agents.name = tasks.agent AND {CANNOT_BE_CALLED})
"""  # noqa: S608 - constants of this module
_CLAIM = "status = 'claimed', owner = $1, epoch = epoch + 1"

# Its run has ended, and its owner may not know it. Not an EXISTS: PostgreSQL may answer many of those by reading every
# run that has ended.
_UNWANTED = f"coalesce((SELECT runs.status IN {FINAL} FROM runs WHERE runs.id = tasks.run_id), false)"  # noqa: S608 - as above


def _remote(pools: str) -> str:
    """
    The pools that have remote tasks, by skipping from one to the next: tasks of other pools are not read.

    `pools` is the place of the value with the pools that are asked for.
    """
    return f"""
        WITH RECURSIVE remote(pool) AS (
            (SELECT coalesce(tasks.pool, '') FROM tasks WHERE {IS_REMOTE}
                ORDER BY coalesce(tasks.pool, '') LIMIT 1)
            UNION ALL
            SELECT (SELECT coalesce(tasks.pool, '') FROM tasks
                WHERE {IS_REMOTE} AND coalesce(tasks.pool, '') > remote.pool
                ORDER BY coalesce(tasks.pool, '') LIMIT 1)
            FROM remote WHERE remote.pool IS NOT NULL
        ), wanted AS (
            SELECT pool FROM remote WHERE pool IS NOT NULL AND ({pools}::text[] IS NULL OR pool = ANY({pools}))
        )
    """  # noqa: S608 - constants of this module


_CLAIM_DUE = f"""
    {_remote("$3")}, due AS MATERIALIZED (
        SELECT of_pool.id FROM wanted CROSS JOIN LATERAL (
            SELECT id, poll_at FROM tasks
            WHERE {IS_REMOTE} AND coalesce(tasks.pool, '') = wanted.pool AND poll_at <= $2 AND {_CAN_BE_CALLED}
            ORDER BY poll_at LIMIT $4 FOR UPDATE SKIP LOCKED
        ) AS of_pool
        WHERE {_HAS_LEASE}
        ORDER BY of_pool.poll_at LIMIT $4
    )
    UPDATE tasks SET {_CLAIM}, poll_at = NULL, stopping = CASE WHEN {_UNWANTED} THEN 1 ELSE stopping END
    FROM due WHERE tasks.id = due.id RETURNING {CLAIM_COLUMNS}
"""  # noqa: S608 - as above


def _first_poll(pools: str) -> str:
    return f"""
        {_remote(pools)}
        SELECT min(of_pool.poll_at) FROM wanted CROSS JOIN LATERAL (
            SELECT poll_at FROM tasks
            WHERE {IS_REMOTE} AND coalesce(tasks.pool, '') = wanted.pool AND {_CAN_BE_CALLED}
            ORDER BY poll_at LIMIT 1
        ) AS of_pool
    """  # noqa: S608 - as above


_FIRST_POLL = _first_poll("$1")
# The first half of the number of our advisory locks, one for each agent.
_CLAIMING = 0x7472_6B6C
# The distinct pools and agents of the queue by skipping from one to the next: the queue's length does not matter.
# First the agent whose task has waited longest. One row at least, for the time of the next poll.
#
# Of the bridges that hold a lease each may claim `share` tasks of an agent without waiting for the others while
# `reserve`, all shares together, are free: whatever the others are claiming at this moment, unseen by us, fits in.
# With less than that left, or with a rate, a bridge has the agent for itself. The locks are PostgreSQL's advisory ones:
# they write nothing, and shared ones exclude those that are not.
_LOOK = f"""
    WITH RECURSIVE queued(pool, agent) AS (
        (SELECT coalesce(tasks.pool, ''), tasks.agent FROM tasks WHERE status = 'queued' AND {_HAS_LEASE}
            ORDER BY coalesce(tasks.pool, ''), tasks.agent LIMIT 1)
        UNION ALL
        SELECT next.pool, next.agent FROM queued CROSS JOIN LATERAL (
            SELECT coalesce(tasks.pool, '') AS pool, tasks.agent FROM tasks
            WHERE status = 'queued' AND (coalesce(tasks.pool, ''), tasks.agent) > (queued.pool, queued.agent)
            ORDER BY coalesce(tasks.pool, ''), tasks.agent LIMIT 1
        ) AS next
    ), waiting AS MATERIALIZED (
        SELECT queued.pool, queued.agent, few.number, few.first_row FROM queued CROSS JOIN LATERAL (
            SELECT count(*)::int AS number, min(id) AS first_row FROM (
                SELECT id FROM tasks
                WHERE status = 'queued' AND coalesce(tasks.pool, '') = queued.pool AND tasks.agent = queued.agent
                ORDER BY id LIMIT $4
            ) AS oldest
        ) AS few
        WHERE $3::text[] IS NULL OR queued.pool = ANY($3)
    ), known AS MATERIALIZED (
        SELECT name, options, CASE WHEN {CANNOT_BE_CALLED} THEN 0 ELSE max_concurrency END AS slots FROM agents
        WHERE name = ANY(ARRAY(SELECT agent FROM waiting))
    ), bridges AS MATERIALIZED (
        SELECT count(*)::int AS number FROM leases WHERE until > $2
    ), tallied AS MATERIALIZED (
        SELECT name, options, slots, slots - busy.number AS free,
            CASE WHEN bridges.number > 1 AND strpos(coalesce(options, ''), '"rate"') = 0
                THEN greatest(1, slots / (4 * bridges.number)) ELSE 0 END AS share,
            bridges.number * greatest(1, slots / (4 * bridges.number)) AS reserve
        FROM known CROSS JOIN bridges CROSS JOIN LATERAL (
            SELECT count(*)::int AS number FROM (
                SELECT 1 FROM tasks
                WHERE status IN ('claimed', 'remote') AND agent = known.name COLLATE "default" LIMIT known.slots
            ) AS counted
        ) AS busy
    )
    SELECT ({_first_poll("$3")}), waiting.agent, waiting.pool, waiting.number, tallied.slots, tallied.options,
        CASE WHEN tallied.share > 0 AND tallied.free >= tallied.reserve THEN tallied.share ELSE 0 END,
        tallied.reserve,
        CASE
            WHEN tallied.free <= 0 THEN NULL
            WHEN tallied.share > 0 AND tallied.free >= tallied.reserve
                THEN pg_try_advisory_xact_lock_shared({_CLAIMING}, hashtext(tallied.name))
            ELSE pg_try_advisory_xact_lock({_CLAIMING}, hashtext(tallied.name))
        END,
        tallied.name IS NOT NULL
    FROM (VALUES (1)) AS one(row) LEFT JOIN waiting ON true LEFT JOIN tallied ON tallied.name = waiting.agent
    ORDER BY waiting.first_row
"""  # noqa: S608 - as above
# Busy slots are counted once more, by a statement after the one that has locked the agents: it sees what those who had
# the locks before have claimed.
_CLAIM_QUEUED = f"""
    WITH picked AS MATERIALIZED (
        SELECT queued.id
        FROM unnest($3::text[], $4::text[], $5::int[], $6::int[], $7::int[])
                AS share(agent, pool, number, slots, reserve)
            CROSS JOIN LATERAL (
                SELECT count(*)::int AS number FROM (
                    SELECT 1 FROM tasks WHERE status IN ('claimed', 'remote') AND agent = share.agent
                    LIMIT share.slots
                ) AS counted
            ) AS busy
            CROSS JOIN LATERAL (
                SELECT id FROM tasks
                WHERE status = 'queued' AND coalesce(tasks.pool, '') = share.pool AND tasks.agent = share.agent
                    AND share.slots - busy.number >= share.reserve
                ORDER BY id LIMIT greatest(0, least(share.number, share.slots - busy.number))
                FOR UPDATE SKIP LOCKED
            ) AS queued
        WHERE {_HAS_LEASE}
    )
    UPDATE tasks SET {_CLAIM} FROM picked WHERE tasks.id = picked.id RETURNING tasks.id, {CLAIM_COLUMNS}
"""  # noqa: S608 - as above
_STOPPING = f"""
    SELECT {CLAIM_COLUMNS} FROM tasks WHERE {IS_CLAIMED} AND owner = $1 AND (stopping = 1 OR {_UNWANTED})
"""  # noqa: S608 - as above

_IS_UP = "SELECT clock_timestamp() - pg_postmaster_start_time() >= make_interval(secs => $1)"
# Two bridges may look at once: each lease that has passed is deleted by one of them.
_DELETE_PASSED_LEASES = """
    DELETE FROM leases WHERE owner = ANY(ARRAY(
        SELECT owner FROM leases WHERE until <= $2 AND owner <> $1 FOR UPDATE SKIP LOCKED))
    RETURNING coalesce(process, owner)
"""
# By skipping from one owner to the next, however many tasks each of them has.
_GONE = f"""
    WITH RECURSIVE holding(owner) AS (
        (SELECT owner FROM tasks WHERE {IS_CLAIMED} ORDER BY owner LIMIT 1)
        UNION ALL
        SELECT (SELECT tasks.owner FROM tasks WHERE {IS_CLAIMED} AND tasks.owner > holding.owner
            ORDER BY tasks.owner LIMIT 1)
        FROM holding WHERE holding.owner IS NOT NULL
    )
    SELECT owner FROM holding
    WHERE owner <> $1 AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.owner = holding.owner)
"""  # noqa: S608 - as above
# What was to end ends, unless the agent has taken it: that stays claimed until the agent has been told. What the agent
# has taken is asked for, never sent again. What must not be called twice keeps owner and epoch: its caller may
# still bring the answer.
_RECLAIM = f"""
    WITH left_behind AS MATERIALIZED (
        SELECT id FROM tasks WHERE {IS_CLAIMED} AND owner = ANY($3::text[]) FOR UPDATE SKIP LOCKED
    )
    UPDATE tasks SET
        status = CASE
            WHEN stopping = 1 AND remote_task_id IS NULL THEN 'done'
            WHEN stopping = 1 THEN 'claimed'
            WHEN remote_task_id IS NOT NULL THEN 'remote'
            WHEN at_most_once = 1 THEN 'in_doubt'
            ELSE 'queued'
        END,
        poll_at = CASE WHEN stopping = 0 AND remote_task_id IS NOT NULL THEN $2 ELSE poll_at END,
        owner = CASE stopping WHEN 1 THEN $1 ELSE owner END,
        epoch = CASE stopping WHEN 1 THEN epoch + 1 ELSE epoch END
    FROM left_behind WHERE tasks.id = left_behind.id
    RETURNING tasks.stopping = 1, tasks.status = 'in_doubt', {CLAIM_COLUMNS}
"""  # noqa: S608 - as above
_HELD = f"""
    SELECT {CLAIM_COLUMNS} FROM tasks WHERE {IS_CLAIMED} AND owner = $1 AND stopping = 0 AND NOT {_UNWANTED}
"""  # noqa: S608 - as above
_HOLD = """
    INSERT INTO leases(owner, until, process) VALUES ($1, $2, $3)
    ON CONFLICT (owner) DO UPDATE SET until = excluded.until, process = excluded.process
"""


class _AgentQueue(NamedTuple):
    """Tasks that wait for one agent in one pool."""

    pool: str
    number: int
    slots: int
    # While others may claim from the same agent: how many we take, and how many slots must be free. 0: no others do.
    share: int = 0
    reserve: int = 0

    @property
    def most(self) -> int:
        return min(self.number, self.share or self.slots)


class PostgresTaskClaims(PostgresWrites):
    """The part of `TaskWrites` that says which bridge may call which task."""

    __slots__ = ("_first_poll", "_left_out", "_next_begin", "_payloads", "_pools")

    def __init__(self, db: Session, now: Instant, payloads: PostgresPayloads) -> None:
        super().__init__(db, now)
        self._payloads = payloads
        self._left_out = False
        # Known while nothing has changed since `claim`.
        self._first_poll: tuple[Instant | None] | None = None
        # Those of the last `claim`, '' among them for tasks of none; None: all.
        self._pools: list[str] | None = None
        # When a task may be claimed that its agent's limits have held back.
        self._next_begin: Instant | None = None

    async def claim(
        self, owner: str, limit: int, pools: Collection[str | None] | None = None
    ) -> list[ClaimedTask]:
        wanted = self._pools = None if pools is None else sorted({pool or "" for pool in pools})
        found = await self._db.rows(_LOOK, owner, self._now, wanted, limit)
        self._first_poll = (found[0][0],)
        claimed: list[ClaimedTask] = []
        if found[0][0] is not None and found[0][0] <= self._now:
            due = await self._db.rows(_CLAIM_DUE, owner, self._now, wanted, limit)
            claimed += await self.claims_of(due)
            self._first_poll = None
        queues = self._queues(found)
        allowances = await self._allowances(found, queues)
        waiting = {agent: sum(queue.number for queue in of_agent) for agent, of_agent in queues.items()}
        while queues and (room := limit - len(claimed)) > 0:
            claimed += await self._claim_queued(owner, queues, room, allowances)
        if allowances is None:
            return claimed
        await write_states(self._db, allowances.changed())
        counts = Counter(claim.task.agent for claim in claimed if claim.remote_task_id is None)
        left = [agent for agent, number in waiting.items() if number > counts[agent]]
        self._next_begin = allowances.next_begin(left)
        return [allowances.marked(claim) for claim in claimed]

    async def claims_of(self, rows: Sequence[Row]) -> list[ClaimedTask]:
        """Claims as they were read. Large ones are decoded in a thread."""
        wanted = pieces_in(row[CLAIM_PAYLOAD] for row in rows)
        if not wanted:
            return _decoded(rows, {})
        bodies = await self._payloads.read(wanted)
        return await asyncio.to_thread(_decoded, rows, bodies)

    async def _allowances(
        self, found: Sequence[Row], queues: dict[str, list[_AgentQueue]]
    ) -> CallAllowances | None:
        """
        Of the agents that have limits; None where there are none, so that they cost nothing.

        Read by a statement of its own, as busy slots are. Takes agents out of `queues` that another bridge holds.
        """
        limits = {
            restored(agent): limited
            for _, agent, _, _, _, options, *_ in found
            if options is not None
            and restored(agent) in queues
            and (limited := limiting(restored(options))) is not None
        }
        if not limits:
            return None
        allowances = CallAllowances(self._now)
        for agent, state in (await try_to_lock_states(self._db, limits)).items():
            if state is None:
                self._left_out = True
                del queues[agent]
            else:
                allowances.add(agent, limits[agent], state)
        return allowances

    def _queues(self, found: Sequence[Row]) -> dict[str, list[_AgentQueue]]:
        """By agent. One that has tasks in several pools gets its slots for one pool after the other."""
        queues: dict[str, list[_AgentQueue]] = {}
        for _, agent, pool, number, slots, _, share, reserve, is_locked, is_known in found:
            if agent is None:
                continue
            if not is_known:
                # Its tasks go on to fail with that reason.
                queue = _AgentQueue(restored(pool), number, NO_LIMIT)
            elif is_locked:
                queue = _AgentQueue(restored(pool), number, slots, share, reserve if share else 0)
            else:
                # Without a free slot there is nothing to look for again: the bridge that frees one claims by itself.
                self._left_out |= is_locked is False
                continue
            queues.setdefault(restored(agent), []).append(queue)
        return queues

    async def _claim_queued(
        self, owner: str, queues: dict[str, list[_AgentQueue]], room: int, allowances: CallAllowances | None
    ) -> list[ClaimedTask]:
        """Takes out of `queues` what has no more to give."""
        first_queues = {agent: waiting[0] for agent, waiting in queues.items()}
        most = {agent: queue.most for agent, queue in first_queues.items()}
        if allowances is not None:
            most = {agent: min(number, allowances.left(agent)) for agent, number in most.items()}
        shares = _shares(most, room)
        rows = [
            (agent, (queue := first_queues[agent]).pool, share, queue.slots, queue.reserve)
            for agent, share in shares.items()
        ]
        taken = await self._db.rows(_CLAIM_QUEUED, owner, self._now, *columns(rows, 5)) if rows else []
        claimed = await self.claims_of([row[1:] for row in sorted(taken, key=lambda row: row[0])])
        counts = Counter(claim.task.agent for claim in claimed)
        for agent, queue in first_queues.items():
            if allowances is not None:
                allowances.take(agent, counts[agent])
            left = queue.number - counts[agent]
            if queue.share:
                # One share in a transaction, and none if the others have left less than the reserve.
                given = shares.get(agent, 0)
                self._left_out |= left > 0 and (counts[agent] == queue.share or counts[agent] < given)
                del queues[agent]
            elif counts[agent] < shares.get(agent, 1):
                # Its slots are used up, or another bridge was quicker.
                del queues[agent]
            elif left:
                queues[agent][0] = queue._replace(number=left)
            else:
                del queues[agent][0]
                if not queues[agent]:
                    del queues[agent]
        return claimed

    async def next_poll(self) -> Instant | None:
        if self._first_poll is None:
            row = await self._db.first(_FIRST_POLL, self._pools)
            self._first_poll = (None if row is None else row[0],)
        (due,) = self._first_poll
        due = earlier(due, self._next_begin)
        return earlier(due, after(self._now, _LOOK_AGAIN)) if self._left_out else due

    def _forget_polls(self) -> None:
        """Something has been written that may be due to be polled."""
        self._first_poll = None

    async def stopping(self, owner: str) -> list[ClaimedTask]:
        return await self.claims_of(await self._db.rows(_STOPPING, owner))

    async def held(self, owner: str) -> list[ClaimedTask]:
        return await self.claims_of(await self._db.rows(_HELD, owner))

    async def reclaim(self, owner: str, grace: timedelta = timedelta(0)) -> ReclaimedTasks:
        self._forget_polls()
        if grace and not await self._has_been_up(grace):
            return ReclaimedTasks(in_doubt=[], stopped=[])
        passed = [restored(name) for (name,) in await self._db.rows(_DELETE_PASSED_LEASES, owner, self._now)]
        gone = [restored(name) for (name,) in await self._db.rows(_GONE, owner)]
        found = await self._db.rows(_RECLAIM, owner, self._now, gone) if gone else []
        return ReclaimedTasks(
            stopped=await self.claims_of([row for was_stopping, _, *row in found if was_stopping]),
            in_doubt=await self.claims_of(
                [row for was_stopping, is_in_doubt, *row in found if is_in_doubt and not was_stopping]
            ),
            gone=[process for process in passed if process],
        )

    async def _has_been_up(self, grace: timedelta) -> bool:
        row = await self._db.first(_IS_UP, grace.total_seconds())
        return row is not None and row[0]


# About as long as another bridge's transaction lasts.
_LOOK_AGAIN = timedelta(milliseconds=5)


def _shares(waiting: Mapping[str, int], room: int) -> dict[str, int]:
    """Equal shares: a long queue for one agent does not keep the others waiting."""
    left = {agent: number for agent, number in waiting.items() if number > 0}
    shares = dict.fromkeys(left, 0)
    while left and room > 0:
        share = max(1, room // len(left))
        for agent, number in list(left.items()):
            given = min(share, number, room)
            shares[agent] += given
            room -= given
            left[agent] = number - given
            if not left[agent]:
                del left[agent]
    return {agent: number for agent, number in shares.items() if number}


def key_of(row: Row) -> TaskKey:
    return TaskKey(restored(row[0]), row[1])


def key_columns(keys: Collection[TaskKey]) -> list[Column]:
    return columns(sorted((key.task_id, key.attempt) for key in keys), 2)


def _decoded(rows: Sequence[Row], bodies: Mapping[bytes, bytes]) -> list[ClaimedTask]:
    return [claimed_task(restored_row(row), bodies) for row in rows]


class PostgresLeaseWrites(PostgresWrites):
    __slots__ = ()

    async def hold(self, owner: str, lasts: timedelta, process: str = "") -> None:
        await self._db.execute(_HOLD, owner, after(self._now, lasts), process)

    async def release(self, owner: str) -> None:
        await self._db.execute("DELETE FROM leases WHERE owner = $1", owner)
