"""Runs that wait for the flow control of their trigger."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.port.automation.triggers import QueuedStart, StartWait
from trunkline.stores.rows import Row
from trunkline.stores.rows.triggers import ENDED, RUNNING, gate_of, start_values
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import (
    changes_of_many,
    execute,
    execute_many,
    first,
    rows,
)
from trunkline.triggers.flow_control import Gate, GateDecision, GatePolicy

_PUT = """
    INSERT INTO queued_starts(run_id, gate, state, priority, not_before, due, policy) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_DUE = """
    SELECT gate FROM (SELECT gate, due FROM queued_starts WHERE due <= ? ORDER BY due LIMIT ?)
    GROUP BY gate ORDER BY min(due) LIMIT ?
"""
_OF_GATE = (
    "SELECT run_id, state, priority, not_before, policy FROM queued_starts WHERE gate = ? ORDER BY number"
)
_SET_RATE = """
    INSERT INTO start_rates(gate, tokens, refilled_at) VALUES (?, ?, ?)
    ON CONFLICT(gate) DO UPDATE SET tokens = excluded.tokens, refilled_at = excluded.refilled_at
"""
# A row that stays as it is is not written: a gate may have many.
_WAIT = """
    UPDATE queued_starts SET due = ?1, reason = ?2 WHERE run_id = ?3 AND (due IS NOT ?1 OR reason IS NOT ?2)
"""
# Runs that are due at one gate together hide other gates for a turn.
_MOST_DUE = 1_024


class SqliteStartQueueReads(SqliteReads):
    async def get(self, run_id: RunId) -> StartWait | None:
        sql = "SELECT reason, not_before FROM queued_starts WHERE run_id = ? AND state = 0"
        row = first(self._db, sql, (run_id,))
        return None if row is None else StartWait(reason=row[0], not_before=row[1])


class SqliteStartQueueWrites(SqliteWrites):
    __slots__ = ()

    async def put(self, starts: Sequence[tuple[RunId, QueuedStart]]) -> None:
        execute_many(self._db, _PUT, [start_values(run_id, start, self._now) for run_id, start in starts])

    async def runs_ended(self, run_ids: Collection[RunId]) -> bool:
        sql = "UPDATE queued_starts SET state = ?, due = ? WHERE run_id = ?"
        return any(changes_of_many(self._db, sql, [(ENDED, self._now, run_id) for run_id in run_ids]))

    async def next_due(self) -> Instant | None:
        row = first(self._db, "SELECT min(due) FROM queued_starts")
        return None if row is None else row[0]

    async def claim(self, limit: int) -> dict[str, Gate]:
        # The writer's transaction is the claim: nothing else can write meanwhile.
        gates = [gate for (gate,) in rows(self._db, _DUE, (self._now, _MOST_DUE, limit))]
        execute_many(
            self._db,
            "DELETE FROM queued_starts WHERE gate = ? AND state = ?",
            [(gate, ENDED) for gate in gates],
        )
        return {gate: self._gate(gate) for gate in gates}

    def _gate(self, gate: str) -> Gate:
        found: list[Row] = list(rows(self._db, _OF_GATE, (gate,)))
        bucket = first(self._db, "SELECT tokens, refilled_at FROM start_rates WHERE gate = ?", (gate,))
        return gate_of(found, bucket)

    async def settle(self, gate: str, policy: GatePolicy, decision: GateDecision) -> None:
        gone = [*decision.drop] if policy.limit is not None else [*decision.drop, *decision.start]
        execute_many(self._db, "DELETE FROM queued_starts WHERE run_id = ?", [(run_id,) for run_id in gone])
        if policy.limit is not None:
            sql = "UPDATE queued_starts SET state = ?, due = NULL, reason = NULL WHERE run_id = ?"
            execute_many(self._db, sql, [(RUNNING, run_id) for run_id in decision.start])
        dues = [decision.look_at, *([None] * len(decision.wait))]
        execute_many(
            self._db,
            _WAIT,
            [(due, decision.reason, run_id) for due, run_id in zip(dues, decision.wait, strict=False)],
        )
        if decision.bucket is not None:
            values = (gate, decision.bucket.tokens, decision.bucket.refilled_at)
            execute(self._db, _SET_RATE, values)

    async def forget_rates(self, before: Instant) -> None:
        execute(self._db, "DELETE FROM start_rates WHERE refilled_at < ?", (before,))
