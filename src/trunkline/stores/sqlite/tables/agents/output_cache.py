"""The cache of outputs. One transaction at a time writes, so there is nothing to lock."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trunkline.stores.port.agents.output_cache import (
    CacheSize,
    ClaimAnswers,
    KeptOutput,
    OutputClaim,
)
from trunkline.stores.rows.output_cache import (
    KEPT_COLUMNS,
    fitting,
    found_answers,
    kept_output,
    kept_values,
    output_claim,
    to_evict,
)
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import execute, execute_many, first, rows

_CLAIM = "run_id, step, number, digest"
_KEEP = f"INSERT OR REPLACE INTO kept_outputs({KEPT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants
_SIZE_OF = "SELECT size_bytes FROM kept_outputs WHERE digest = ? AND expires_at > ?"
_GET = f"SELECT {KEPT_COLUMNS} FROM kept_outputs WHERE digest = ?"  # noqa: S608 - as above
_PUT_CLAIM = """
    INSERT INTO output_claims(run_id, step, number, digest, waits, since) VALUES (?, ?, ?, ?, 1, ?)
    ON CONFLICT (run_id, step) DO UPDATE SET number = excluded.number,
        waits = CASE WHEN digest = excluded.digest THEN waits ELSE 1 END,
        since = CASE WHEN digest = excluded.digest THEN since ELSE excluded.since END, digest = excluded.digest
"""
_END_CLAIM = "DELETE FROM output_claims WHERE run_id = ? AND step = ?"
_END_OF_RUNS = """
    DELETE FROM output_claims WHERE digest = ? AND NOT EXISTS (
        SELECT 1 FROM runs WHERE runs.id = output_claims.run_id AND runs.finished_at IS NULL
    )
"""
_FIRST = f"""
    SELECT {_CLAIM}, waits FROM output_claims WHERE digest = ? ORDER BY waits, since, run_id, step LIMIT 1
"""  # noqa: S608 - as above
_LEAD = "UPDATE output_claims SET waits = 0 WHERE run_id = ? AND step = ?"
# Whether a run above this one works on an output itself.
_IS_INSIDE = """
    WITH RECURSIVE above(run_id, step) AS (
        SELECT parent_id, parent_step FROM runs WHERE id = ? AND parent_id IS NOT NULL
        UNION ALL
        SELECT runs.parent_id, runs.parent_step FROM above JOIN runs ON runs.id = above.run_id
        WHERE runs.parent_id IS NOT NULL
    )
    SELECT 1 FROM above JOIN output_claims AS claim ON claim.run_id = above.run_id AND claim.step = above.step
    WHERE claim.waits = 0 LIMIT 1
"""
_TOTAL = "SELECT count(*), coalesce(sum(size_bytes), 0) FROM kept_outputs"


class SqliteOutputCacheReads(SqliteReads):
    async def size(self) -> CacheSize:
        row = first(self._db, f"{_TOTAL} WHERE expires_at > ?", (self._clock.now(),))
        return CacheSize(*(row or (0, 0)))


class SqliteOutputCacheWrites(SqliteWrites):
    __slots__ = ()

    async def lock(self, digests: Sequence[str]) -> None:
        """There is no other transaction."""

    async def keep(self, outputs: Sequence[KeptOutput]) -> list[OutputClaim]:
        values = kept_values(outputs)
        execute_many(self._db, _KEEP, values)
        claims: list[OutputClaim] = []
        for digest in (value[0] for value in values):
            sql = f"SELECT {_CLAIM} FROM output_claims WHERE digest = ? ORDER BY since, run_id, step"  # noqa: S608 - as above
            claims += map(output_claim, rows(self._db, sql, (digest,)))
            execute(self._db, "DELETE FROM output_claims WHERE digest = ?", (digest,))
        return claims

    async def claim(self, claims: Sequence[OutputClaim], *, max_bytes: int) -> ClaimAnswers:
        sizes: dict[str, int] = {}
        for digest in dict.fromkeys(claim.digest for claim in claims):
            row = first(self._db, _SIZE_OF, (digest, self._now))
            if row is not None:
                sizes[digest] = row[0]
        outputs = [
            kept_output(row)
            for digest in fitting(sizes.items(), max_bytes)
            for row in rows(self._db, _GET, (digest,))
        ]
        answers = found_answers(claims, {*sizes}, outputs)
        execute_many(
            self._db, _END_CLAIM, [(claim.run_id, claim.step) for claim in claims if claim.digest in sizes]
        )
        missing = [claim for claim in claims if claim.digest not in sizes]
        if not missing:
            return answers
        digests = list(dict.fromkeys(claim.digest for claim in missing))
        execute_many(self._db, _END_OF_RUNS, [(digest,) for digest in digests])
        execute_many(self._db, _PUT_CLAIM, [(*claim, self._now) for claim in missing])
        leads = self._lead(digests, missing)
        alone = [
            claim
            for claim in missing
            if claim not in leads and first(self._db, _IS_INSIDE, (claim.run_id,)) is not None
        ]
        execute_many(self._db, _END_CLAIM, [(claim.run_id, claim.step) for claim in alone])
        return msgspec.structs.replace(answers, leads=leads, alone=alone)

    def _lead(self, digests: Sequence[str], asking: Sequence[OutputClaim] = ()) -> list[OutputClaim]:
        """Those that lead from now on, and those that ask and lead already."""
        leads: list[OutputClaim] = []
        asked = {*asking}
        for digest in digests:
            row = first(self._db, _FIRST, (digest,))
            if row is not None:
                claim = output_claim(row[:4])
                if row[4]:
                    execute(self._db, _LEAD, (claim.run_id, claim.step))
                    leads.append(claim)
                elif claim in asked:
                    leads.append(claim)
        return leads

    async def release(self, claims: Sequence[OutputClaim]) -> list[OutputClaim]:
        execute_many(self._db, _END_CLAIM, [(claim.run_id, claim.step) for claim in claims])
        return self._lead(list(dict.fromkeys(claim.digest for claim in claims)))

    async def evict(self, *, max_outputs: int, max_bytes: int) -> int:
        over = execute(self._db, "DELETE FROM kept_outputs WHERE expires_at <= ?", (self._now,))
        count, size = first(self._db, _TOTAL) or (0, 0)
        if count <= max_outputs and size <= max_bytes:
            return over
        entries = rows(self._db, "SELECT digest, size_bytes FROM kept_outputs ORDER BY expires_at, digest")
        evicted = to_evict(list(entries), outputs=count - max_outputs, size_bytes=size - max_bytes)
        execute_many(self._db, "DELETE FROM kept_outputs WHERE digest = ?", [(digest,) for digest in evicted])
        return over + len(evicted)

    async def clear(self, *, workflow: str | None = None, agent: str | None = None) -> int:
        sql = "DELETE FROM kept_outputs WHERE (?1 IS NULL OR workflow = ?1) AND (?2 IS NULL OR agent = ?2)"
        return execute(self._db, sql, (workflow, agent))
