"""
Runs that wait for the flow control of their trigger.

A transaction that decides about a gate holds a lock for it until the commit. Runs come and end without it: each
changes only its own row, which is due then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.port.automation.triggers import QueuedStart, StartWait
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.session import columns
from trunkline.stores.postgres.database.text_encoding import as_uuid, restored_row
from trunkline.stores.rows import Row
from trunkline.stores.rows.triggers import ENDED, RUNNING, WAITING, gate_of, start_values
from trunkline.triggers.flow_control import Gate, GateDecision, GatePolicy

_PUT = """
    INSERT INTO queued_starts(run_id, gate, state, priority, not_before, due, policy)
    SELECT new.run_id, new.gate, new.state, new.priority, new.not_before, new.due, new.policy
    FROM unnest($1::uuid[], $2::text[], $3::smallint[], $4::int[], $5::bigint[], $6::bigint[], $7::bytea[])
        WITH ORDINALITY AS new(run_id, gate, state, priority, not_before, due, policy, place)
    ORDER BY new.place
"""
# In one order everywhere, so that two transactions do not wait for each other.
_ENDED = """
    WITH ended AS MATERIALIZED (
        SELECT number FROM queued_starts WHERE run_id = ANY($1::uuid[]) ORDER BY number FOR NO KEY UPDATE
    )
    UPDATE queued_starts SET state = $2, due = $3 FROM ended WHERE queued_starts.number = ended.number
"""
_CLAIM = """
    WITH due AS MATERIALIZED (
        SELECT gate, min(due) AS since FROM (
            SELECT gate, due FROM queued_starts WHERE due <= $1 ORDER BY due LIMIT $2
        ) AS first GROUP BY gate ORDER BY since LIMIT $3
    )
    SELECT gate FROM due WHERE pg_try_advisory_xact_lock(hashtextextended('trunkline gate ' || gate, 0)) ORDER BY since
"""
_OF_GATES = """
    SELECT gate, run_id::text, state, priority, not_before, policy FROM queued_starts
    WHERE gate = ANY($1::text[]) AND state <> $2 ORDER BY number
"""
_ADMIT = """
    UPDATE queued_starts SET state = $2, due = NULL, reason = NULL WHERE run_id = ANY($1::uuid[]) AND state = $3
"""
# A row that stays as it is is not written: a gate may have many.
_WAIT = """
    UPDATE queued_starts SET due = new.due, reason = $3
    FROM unnest($1::uuid[], $2::bigint[]) AS new(run_id, due)
    WHERE queued_starts.run_id = new.run_id AND queued_starts.state = $4
        AND (queued_starts.due IS DISTINCT FROM new.due OR queued_starts.reason IS DISTINCT FROM $3)
"""
_SET_RATE = """
    INSERT INTO start_rates(gate, tokens, refilled_at) VALUES ($1, $2, $3)
    ON CONFLICT (gate) DO UPDATE SET tokens = excluded.tokens, refilled_at = excluded.refilled_at
"""
# Runs that are due at one gate together hide other gates for a turn.
_MOST_DUE = 1_024


class PostgresStartQueueReads(PostgresReads):
    async def get(self, run_id: RunId) -> StartWait | None:
        sql = "SELECT reason, not_before FROM queued_starts WHERE run_id = $1 AND state = 0"
        row = None if as_uuid(run_id) is None else await self._first(sql, run_id)
        return None if row is None else StartWait(reason=row[0], not_before=row[1])


class PostgresStartQueueWrites(PostgresWrites):
    __slots__ = ()

    async def put(self, starts: Sequence[tuple[RunId, QueuedStart]]) -> None:
        values = [start_values(run_id, start, self._now) for run_id, start in starts]
        await self._db.execute(_PUT, *columns(values, 7))

    async def runs_ended(self, run_ids: Collection[RunId]) -> bool:
        return await self._db.execute(_ENDED, list(run_ids), ENDED, self._now) > 0

    async def next_due(self) -> Instant | None:
        row = await self._db.first("SELECT min(due) FROM queued_starts")
        return None if row is None else row[0]

    async def claim(self, limit: int) -> dict[str, Gate]:
        gates = [restored_row(row)[0] for row in await self._db.rows(_CLAIM, self._now, _MOST_DUE, limit)]
        if not gates:
            return {}
        sql = "DELETE FROM queued_starts WHERE gate = ANY($1::text[]) AND state = $2"
        await self._db.execute(sql, gates, ENDED)
        found: dict[str, list[Row]] = {gate: [] for gate in gates}
        for row in await self._db.rows(_OF_GATES, gates, ENDED):
            gate, *values = restored_row(row)
            found[gate].append(values)
        sql = "SELECT gate, tokens, refilled_at FROM start_rates WHERE gate = ANY($1::text[])"
        buckets = {gate: row for gate, *row in map(restored_row, await self._db.rows(sql, gates))}
        return {gate: gate_of(rows, buckets.get(gate)) for gate, rows in found.items()}

    async def settle(self, gate: str, policy: GatePolicy, decision: GateDecision) -> None:
        gone = [*decision.drop] if policy.limit is not None else [*decision.drop, *decision.start]
        if gone:
            sql = "DELETE FROM queued_starts WHERE run_id = ANY($1::uuid[])"
            await self._db.execute(sql, sorted(gone))
        if policy.limit is not None and decision.start:
            # One that was cancelled meanwhile has ended.
            await self._db.execute(_ADMIT, sorted(decision.start), RUNNING, WAITING)
        if decision.wait:
            dues = [decision.look_at, *([None] * (len(decision.wait) - 1))]
            waits = list(zip(decision.wait, dues, strict=True))
            await self._db.execute(_WAIT, *columns(waits, 2), decision.reason, WAITING)
        if decision.bucket is not None:
            bucket = decision.bucket
            await self._db.execute(_SET_RATE, gate, bucket.tokens, bucket.refilled_at)

    async def forget_rates(self, before: Instant) -> None:
        await self._db.execute("DELETE FROM start_rates WHERE refilled_at < $1", before)
