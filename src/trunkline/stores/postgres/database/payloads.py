"""
Large payloads in PostgreSQL: pieces that are stored once, and the runs that use them. See `stores.payloads`.

Processes store and delete the same pieces at the same time. Who uses a piece locks its row first, who deletes one
locks it against that, and both then look again with a new statement. So a piece that is used is never deleted, and
the last of its users deletes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic

from trunkline.stores.payloads import (
    MARK,
    MAX_IN_ROW_BYTES,
    MAX_UNUSED_BYTES,
    Piece,
    PieceCache,
    SplitRows,
    pieces_in,
    split_rows,
)
from trunkline.stores.postgres.database.connection import ConnectionPool
from trunkline.stores.postgres.database.session import Session, columns
from trunkline.stores.rows import Value

# Rows with more than this are split in a thread.
_LARGE_BYTES = 1024 * 1024
_LOCK_KNOWN = "SELECT digest FROM payloads WHERE digest = ANY($1::bytea[]) ORDER BY digest FOR KEY SHARE"
# Another process may be storing the same piece: its row is locked, too.
_INSERT = """
    INSERT INTO payloads(digest, body) SELECT * FROM unnest($1::bytea[], $2::bytea[])
    ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest
"""
_USE = """
    INSERT INTO payload_uses(run_id, digest, size) SELECT * FROM unnest($1::uuid[], $2::bytea[], $3::bigint[])
    ON CONFLICT DO NOTHING
"""
_BODIES = "SELECT digest, body FROM payloads WHERE digest = ANY($1::bytea[])"
_USED = "SELECT DISTINCT digest FROM payload_uses WHERE run_id = ANY($1::uuid[])"
_USED_BYTES = """
    SELECT payload_uses.run_id::text, sum(payload_uses.size)::bigint FROM payload_uses
    WHERE run_id = ANY($1::uuid[]) GROUP BY run_id
"""
_LOCK = "SELECT digest FROM payloads WHERE digest = ANY($1::bytea[]) ORDER BY digest FOR UPDATE"
_STOP_USING = "DELETE FROM payload_uses WHERE run_id = ANY($1::uuid[]) AND digest = ANY($2::bytea[])"
_DELETE_UNUSED = """
    DELETE FROM payloads WHERE digest = ANY($1::bytea[])
        AND NOT EXISTS (SELECT 1 FROM payload_uses WHERE payload_uses.digest = payloads.digest)
"""
# Of the revision before, and alive a minute ago.
_OLD_PROCESS = """
    SELECT 1 FROM processes WHERE reads_pieces IS NULL
        AND until > extract(epoch FROM clock_timestamp() - interval '1 minute') * 1000000
    LIMIT 1
"""
_ASK_AGAIN_SECONDS = 10.0
_MARKED = f"'\\x{MARK.hex()}'::bytea"


def _is_list(column: str) -> str:
    return f"substring({column} FROM 1 FOR {len(MARK)}) = {_MARKED}"


# A task's id begins with its run's id and a slash; '0' is the character after the slash.
_TASKS = "task_id >= $1::uuid::text || '/' AND task_id < $1::uuid::text || '0'"
# What a run has in rows.
_LISTS = f"""
    SELECT input FROM runs WHERE id = $1 AND {_is_list("input")}
    UNION ALL SELECT output FROM runs WHERE id = $1 AND {_is_list("output")}
    UNION ALL SELECT input FROM steps WHERE run_id = $1 AND {_is_list("input")}
    UNION ALL SELECT output FROM steps WHERE run_id = $1 AND {_is_list("output")}
    UNION ALL SELECT payload FROM tasks WHERE {_TASKS} AND {_is_list("payload")}
    UNION ALL SELECT payload FROM dispatches WHERE {_TASKS} AND {_is_list("payload")}
"""  # noqa: S608 - constants of this module


class PostgresPayloads:
    """Over the session of one transaction. `cache` is that of the process."""

    __slots__ = ("_cache", "_db", "_gate")

    def __init__(self, db: Session, cache: PieceCache, gate: PieceGate) -> None:
        self._db = db
        self._cache = cache
        self._gate = gate

    async def split(self, rows: Sequence[tuple[Value, ...]], places: Sequence[int]) -> SplitRows:
        """As `split_rows`; in a thread where that takes long. Nothing is split while the gate is closed."""
        size_bytes = 0
        for row in rows:
            for place in places:
                value = row[place]
                if isinstance(value, bytes) and len(value) > MAX_IN_ROW_BYTES:
                    size_bytes += len(value)
        if not size_bytes or not await self._gate.is_open(self._db):
            return rows, {}
        if size_bytes > _LARGE_BYTES:
            return await asyncio.to_thread(split_rows, rows, places)
        return split_rows(rows, places)

    async def put(self, written: Iterable[tuple[str, Sequence[Piece]]]) -> None:
        """Stores the pieces of rows that were written, each with its run."""
        uses = {(run_id, piece.digest): piece for run_id, pieces in written for piece in pieces}
        if not uses:
            return
        pieces = {piece.digest: piece for piece in uses.values()}
        known = {digest for (digest,) in await self._db.rows(_LOCK_KNOWN, sorted(pieces))}
        missing = [pieces[digest] for digest in sorted(pieces) if digest not in known]
        for piece in missing:
            await self._db.execute(_INSERT, [piece.digest], [piece.body])
        rows = [(run_id, digest, len(piece.body)) for (run_id, digest), piece in sorted(uses.items())]
        await self._db.execute(_USE, *columns(rows, 3))
        self._cache.put(pieces.values())

    async def read(self, wanted: Mapping[bytes, int]) -> dict[bytes, bytes]:
        """Bodies by digest, of those that exist. `wanted`: digests and sizes."""
        return await _read(self._db, wanted, self._cache)

    async def trim(self, sizes: Mapping[str, int]) -> None:
        """Deletes what runs do not use any more, if that is much. `sizes`: how many bytes they use, by run."""
        for run_id, stored_bytes in await self._db.rows(_USED_BYTES, sorted(sizes)):
            if stored_bytes > 2 * sizes[run_id] + MAX_UNUSED_BYTES:
                await self._trim(run_id)

    async def _trim(self, run_id: str) -> None:
        used = pieces_in(stored for (stored,) in await self._db.rows(_LISTS, run_id))
        stored = {digest for (digest,) in await self._db.rows(_USED, [run_id])}
        await self._delete([run_id], sorted(stored - used.keys()))

    async def delete(self, run_ids: Sequence[str]) -> None:
        """Of runs that are deleted; their rows may be gone already."""
        await self._delete(run_ids, sorted(digest for (digest,) in await self._db.rows(_USED, list(run_ids))))

    async def _delete(self, run_ids: Sequence[str], digests: list[bytes]) -> None:
        if digests:
            await self._db.rows(_LOCK, digests)
            await self._db.execute(_STOP_USING, list(run_ids), digests)
            await self._db.execute(_DELETE_UNUSED, digests)


class PostgresPayloadReads:
    """Pieces of what is committed."""

    def __init__(self, pool: ConnectionPool, cache: PieceCache) -> None:
        self._pool = pool
        self._cache = cache

    async def read(self, wanted: Mapping[bytes, int]) -> dict[bytes, bytes]:
        """As `PostgresPayloads.read`."""
        async with self._pool.reader() as db:
            return await _read(db, wanted, self._cache)


class PieceGate:
    """
    Whether values may be split. Processes of the revision before cannot read them, and go on during an upgrade.

    Later none of them can start: the database is newer than they are.
    """

    def __init__(self) -> None:
        self._is_open = False
        self._asked_at = -_ASK_AGAIN_SECONDS

    async def is_open(self, db: Session) -> bool:
        if not self._is_open and monotonic() >= self._asked_at + _ASK_AGAIN_SECONDS:
            self._asked_at = monotonic()
            self._is_open = await db.first(_OLD_PROCESS) is None
        return self._is_open


async def _read(db: Session, wanted: Mapping[bytes, int], cache: PieceCache) -> dict[bytes, bytes]:
    bodies = cache.known(wanted)
    missing = [digest for digest in wanted if digest not in bodies]
    if missing:
        read: dict[bytes, bytes] = {row[0]: row[1] for row in await db.rows(_BODIES, missing)}
        cache.put(read.items())
        bodies |= read
    return bodies
