"""The cache of outputs. Advisory locks, in the order of the digests, keep two transactions from the same output."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trunkline.stores.port.agents.output_cache import (
    CacheSize,
    ClaimAnswers,
    KeptOutput,
    OutputClaim,
)
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.session import columns
from trunkline.stores.postgres.database.text_encoding import restored_row
from trunkline.stores.rows.output_cache import (
    KEPT_COLUMNS,
    fitting,
    found_answers,
    kept_output,
    kept_values,
    output_claim,
    to_evict,
)

_LOCK = """
    SELECT pg_advisory_xact_lock(hashtextextended('trunkline output ' || digest, 0))
    FROM (SELECT digest FROM unnest($1::text[]) AS asked(digest) ORDER BY digest) AS wanted
"""
_CLAIM = "run_id::text, step, number, digest"
_SHOWN = KEPT_COLUMNS.replace("run_id", "run_id::text")
_KEEP = f"""
    INSERT INTO kept_outputs({KEPT_COLUMNS})
    SELECT * FROM unnest($1::text[], $2::bytea[], $3::int[], $4::uuid[], $5::text[], $6::text[], $7::text[],
        $8::bigint[], $9::bigint[])
    ON CONFLICT (digest) DO UPDATE SET output = excluded.output, size_bytes = excluded.size_bytes,
        run_id = excluded.run_id, step = excluded.step, workflow = excluded.workflow, agent = excluded.agent,
        at = excluded.at, expires_at = excluded.expires_at
"""  # noqa: S608 - constants
_ANSWERED = f"DELETE FROM output_claims WHERE digest = ANY($1::text[]) RETURNING since, {_CLAIM}"  # noqa: S608 - as above
_SIZES = """
    SELECT digest, size_bytes FROM kept_outputs WHERE digest = ANY($1::text[]) AND expires_at > $2 ORDER BY digest
"""
_GET = f"SELECT {_SHOWN} FROM kept_outputs WHERE digest = ANY($1::text[])"  # noqa: S608 - as above
_PUT_CLAIM = """
    INSERT INTO output_claims AS claim (run_id, step, number, digest, waits, since)
    SELECT *, 1, $5::bigint FROM unnest($1::uuid[], $2::text[], $3::int[], $4::text[])
    ON CONFLICT (run_id, step) DO UPDATE SET number = excluded.number,
        waits = CASE WHEN claim.digest = excluded.digest THEN claim.waits ELSE 1 END,
        since = CASE WHEN claim.digest = excluded.digest THEN claim.since ELSE excluded.since END,
        digest = excluded.digest
"""
_END_CLAIMS = """
    DELETE FROM output_claims USING unnest($1::uuid[], $2::text[]) AS old(run_id, step)
    WHERE output_claims.run_id = old.run_id AND output_claims.step = old.step
"""
_END_OF_RUNS = """
    DELETE FROM output_claims WHERE digest = ANY($1::text[]) AND NOT EXISTS (
        SELECT 1 FROM runs WHERE runs.id = output_claims.run_id AND runs.finished_at IS NULL
    )
"""
_FIRST = f"""
    SELECT {_CLAIM.replace("digest", "found.digest")}, waits
    FROM unnest($1::text[]) AS asked(digest) CROSS JOIN LATERAL (
        SELECT * FROM output_claims WHERE output_claims.digest = asked.digest
        ORDER BY waits, since, run_id, step LIMIT 1
    ) AS found ORDER BY found.digest
"""  # noqa: S608 - as above
_LEAD = """
    UPDATE output_claims SET waits = 0 FROM unnest($1::uuid[], $2::text[]) AS chosen(run_id, step)
    WHERE output_claims.run_id = chosen.run_id AND output_claims.step = chosen.step
"""
# Those whose parents, or the parents of those, work on an output themselves.
_INSIDE = """
    WITH RECURSIVE above(asked, run_id, step) AS (
        SELECT runs.id, parent_id, parent_step FROM runs WHERE id = ANY($1::uuid[]) AND parent_id IS NOT NULL
        UNION ALL
        SELECT above.asked, runs.parent_id, runs.parent_step FROM above JOIN runs ON runs.id = above.run_id
        WHERE runs.parent_id IS NOT NULL
    )
    SELECT DISTINCT above.asked::text FROM above
        JOIN output_claims AS claim ON claim.run_id = above.run_id AND claim.step = above.step
    WHERE claim.waits = 0
"""
_TOTAL = "SELECT count(*), coalesce(sum(size_bytes), 0)::bigint FROM kept_outputs"
_CLEAR = """
    DELETE FROM kept_outputs
    WHERE ($1::text IS NULL OR workflow = $1::text) AND ($2::text IS NULL OR agent = $2::text)
"""


class PostgresOutputCacheReads(PostgresReads):
    async def size(self) -> CacheSize:
        async with self._pool.reader() as db:
            row = await db.first(f"{_TOTAL} WHERE expires_at > $1", await self._clock.now(db))
        return CacheSize(*(row or (0, 0)))


class PostgresOutputCacheWrites(PostgresWrites):
    __slots__ = ()

    async def lock(self, digests: Sequence[str]) -> None:
        await self._db.rows(_LOCK, sorted({*digests}))

    async def keep(self, outputs: Sequence[KeptOutput]) -> list[OutputClaim]:
        values = kept_values(outputs)
        await self._db.execute(_KEEP, *columns(values, 9))
        answered = await self._db.rows(_ANSWERED, [value[0] for value in values])
        return [output_claim(restored_row(row)[1:]) for row in sorted(answered, key=tuple)]

    async def claim(self, claims: Sequence[OutputClaim], *, max_bytes: int) -> ClaimAnswers:
        digests = list(dict.fromkeys(claim.digest for claim in claims))
        sizes = dict(map(tuple, await self._db.rows(_SIZES, digests, self._now)))
        outputs = []
        if sizes:
            rows = await self._db.rows(_GET, fitting(sizes.items(), max_bytes))
            outputs = [kept_output(restored_row(row)) for row in rows]
            await self._end([claim for claim in claims if claim.digest in sizes])
        answers = found_answers(claims, {*sizes}, outputs)
        missing = [claim for claim in claims if claim.digest not in sizes]
        if not missing:
            return answers
        digests = [digest for digest in digests if digest not in sizes]
        await self._db.execute(_END_OF_RUNS, digests)
        await self._db.execute(_PUT_CLAIM, *columns(sorted(missing), 4), self._now)
        leads = await self._lead(digests, missing)
        waiting = [claim for claim in missing if claim not in leads]
        inside = {row[0] for row in await self._db.rows(_INSIDE, [claim.run_id for claim in waiting])}
        alone = [claim for claim in waiting if claim.run_id in inside]
        await self._end(alone)
        return msgspec.structs.replace(answers, leads=leads, alone=alone)

    async def _end(self, claims: Sequence[OutputClaim]) -> None:
        if claims:
            places = sorted((claim.run_id, claim.step) for claim in claims)
            await self._db.execute(_END_CLAIMS, *columns(places, 2))

    async def _lead(self, digests: Sequence[str], asking: Sequence[OutputClaim] = ()) -> list[OutputClaim]:
        """Those that lead from now on, and those that ask and lead already."""
        first = [restored_row(row) for row in await self._db.rows(_FIRST, [*digests])]
        new = [output_claim(row[:4]) for row in first if row[4]]
        if new:
            await self._db.execute(_LEAD, *columns([(claim.run_id, claim.step) for claim in new], 2))
        asked = {*asking}
        old = [claim for row in first if not row[4] and (claim := output_claim(row[:4])) in asked]
        return [*new, *old]

    async def release(self, claims: Sequence[OutputClaim]) -> list[OutputClaim]:
        await self._end(claims)
        return await self._lead(sorted({claim.digest for claim in claims}))

    async def evict(self, *, max_outputs: int, max_bytes: int) -> int:
        over = await self._db.execute("DELETE FROM kept_outputs WHERE expires_at <= $1", self._now)
        count, size = await self._db.first(_TOTAL) or (0, 0)
        if count <= max_outputs and size <= max_bytes:
            return over
        entries = await self._db.rows(
            "SELECT digest, size_bytes FROM kept_outputs ORDER BY expires_at, digest"
        )
        evicted = to_evict(
            [(row[0], row[1]) for row in entries], outputs=count - max_outputs, size_bytes=size - max_bytes
        )
        return over + await self._db.execute(
            "DELETE FROM kept_outputs WHERE digest = ANY($1::text[])", evicted
        )

    async def clear(self, *, workflow: str | None = None, agent: str | None = None) -> int:
        return await self._db.execute(_CLEAR, workflow, agent)
