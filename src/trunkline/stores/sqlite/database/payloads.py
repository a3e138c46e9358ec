"""Large payloads in SQLite: pieces that are stored once, and the runs that use them. See `stores.payloads`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import apsw

from trunkline.ids import RunId
from trunkline.stores.payloads import MARK, MAX_UNUSED_BYTES, Piece, PieceCache, pieces_in
from trunkline.stores.sqlite.database.connection import connect
from trunkline.stores.sqlite.database.statements import (
    LARGE_BYTES,
    Row,
    execute,
    execute_many,
    first,
    rows,
    run_statements,
)

_KNOWN = "SELECT 1 FROM payloads WHERE digest = ?"
_INSERT = "INSERT INTO payloads(digest, body) VALUES (?, ?)"
_USE = "INSERT INTO payload_uses(run_id, digest, size) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_BODY = "SELECT body FROM payloads WHERE digest = ?"
_USED = "SELECT digest FROM payload_uses WHERE run_id = ?"
_USED_BYTES = "SELECT total(size) FROM payload_uses WHERE run_id = ?"
_STOP_USING = "DELETE FROM payload_uses WHERE run_id = ? AND digest = ?"
_DELETE_UNUSED = """
    DELETE FROM payloads WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM payload_uses WHERE digest = ?1)
"""
# A task's id begins with its run's id and a slash; '0' is the character after the slash.
_TASKS = "task_id >= ?1 || '/' AND task_id < ?1 || '0'"
_MARKED = f"x'{MARK.hex()}'"
# What a run has in rows.
_LISTS = f"""
    SELECT input FROM runs WHERE id = ?1 AND substr(input, 1, {len(MARK)}) = {_MARKED}
    UNION ALL SELECT output FROM runs WHERE id = ?1 AND substr(output, 1, {len(MARK)}) = {_MARKED}
    UNION ALL SELECT input FROM steps WHERE run_id = ?1 AND substr(input, 1, {len(MARK)}) = {_MARKED}
    UNION ALL SELECT output FROM steps WHERE run_id = ?1 AND substr(output, 1, {len(MARK)}) = {_MARKED}
    UNION ALL SELECT payload FROM tasks WHERE {_TASKS} AND substr(payload, 1, {len(MARK)}) = {_MARKED}
    UNION ALL SELECT payload FROM dispatches WHERE {_TASKS} AND substr(payload, 1, {len(MARK)}) = {_MARKED}
"""  # noqa: S608 - constants of this module


class SqlitePayloads:
    """Over one connection. `cache` is that of the process."""

    __slots__ = ("_cache", "_db")

    def __init__(self, db: apsw.Connection, cache: PieceCache) -> None:
        self._db = db
        self._cache = cache

    def put(self, run_id: str, pieces: Iterable[Piece]) -> None:
        """Stores the pieces of rows of this run that were written."""
        for piece in pieces:
            self._put(run_id, piece)

    def _put(self, run_id: str, piece: Piece) -> None:
        if first(self._db, _KNOWN, (piece.digest,)) is None:
            execute(self._db, _INSERT, piece)
        execute(self._db, _USE, (run_id, piece.digest, len(piece.body)))
        self._cache.put([piece])

    async def read(self, wanted: Mapping[bytes, int]) -> dict[bytes, bytes]:
        """Bodies by digest, of those that exist. `wanted`: digests and sizes."""
        bodies = self._cache.known(wanted)
        missing = {digest: size for digest, size in wanted.items() if digest not in bodies}
        if missing:
            bodies |= await run_statements(lambda: self.read_now(missing), sum(missing.values()))
        return bodies

    def read_now(self, wanted: Iterable[bytes]) -> dict[bytes, bytes]:
        """The same, in a thread or of little."""
        bodies = self._cache.known(wanted)
        read = _bodies(self._db, [digest for digest in wanted if digest not in bodies])
        self._cache.put(read.items())
        return bodies | read

    def trim(self, run_id: RunId, size_bytes: int) -> None:
        """Deletes what a run does not use any more, if that is much. `size_bytes`: what it uses."""
        row = first(self._db, _USED_BYTES, (run_id,))
        if row is None or row[0] <= 2 * size_bytes + MAX_UNUSED_BYTES:
            return
        used = pieces_in(stored for (stored,) in rows(self._db, _LISTS, (run_id,)))
        unused = [digest for (digest,) in rows(self._db, _USED, (run_id,)) if digest not in used]
        execute_many(self._db, _STOP_USING, [(run_id, digest) for digest in unused])
        execute_many(self._db, _DELETE_UNUSED, [(digest,) for digest in unused])

    def delete(self, run_ids: Sequence[Row]) -> None:
        """Of runs that are deleted; their rows may be gone already."""
        used = {digest for (run_id,) in run_ids for (digest,) in list(rows(self._db, _USED, (run_id,)))}
        if used:
            execute_many(self._db, "DELETE FROM payload_uses WHERE run_id = ?", run_ids)
            execute_many(self._db, _DELETE_UNUSED, [(digest,) for digest in used])


class SqlitePayloadReads:
    """
    Pieces of what is committed.

    Large ones are read in a thread, over a connection of its own: the one for reading stays free for everything else.
    """

    __slots__ = ("_cache", "_db", "_path")

    def __init__(self, db: apsw.Connection, path: Path, cache: PieceCache) -> None:
        self._db = db
        self._path = path
        self._cache = cache

    async def read(self, wanted: Mapping[bytes, int]) -> dict[bytes, bytes]:
        """As `SqlitePayloads.read`."""
        bodies = self._cache.known(wanted)
        missing = {digest: size for digest, size in wanted.items() if digest not in bodies}
        if sum(missing.values()) > LARGE_BYTES:
            bodies |= await asyncio.to_thread(self._read_apart, list(missing))
        elif missing:
            bodies |= _bodies(self._db, missing)
        return bodies

    def _read_apart(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        with closing(connect(self._path)) as db:
            return _bodies(db, digests)


def _bodies(db: apsw.Connection, digests: Iterable[bytes]) -> dict[bytes, bytes]:
    found = ((digest, first(db, _BODY, (digest,))) for digest in digests)
    return {digest: row[0] for digest, row in found if row is not None}
