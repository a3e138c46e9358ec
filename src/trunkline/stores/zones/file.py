"""
A zone's file: SQLite, one process.

Statements run on the event loop's own thread and do not wait for the disk (`synchronous=NORMAL`): the operating system
has what they wrote, which the death of the process does not change. `accept` has SQLite's log synced in a thread;
the loop goes on meanwhile, which it could not if a commit waited for the disk and kept the next one out.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

import apsw

from trunkline.clock import Instant
from trunkline.errors import ConfigurationError, Unavailable
from trunkline.stores.sqlite.committer import Committer
from trunkline.stores.sqlite.connection import (
    check_library,
    connect,
    make_file,
    make_folder,
    owned,
    translated_errors,
)
from trunkline.stores.sqlite.driver import Row, execute, first, rows
from trunkline.stores.zones import CallKey, Refusal, ZoneCall

SCHEMA_VERSION = 1
MOST_REFUSALS = 10_000
# Deleted at once: a few milliseconds, in which the zone answers nobody.
_FORGOTTEN_AT_ONCE = 500
# Refusals come in floods; the oldest are deleted by so many.
_REFUSALS_AT_ONCE = 100

# No index on what a call becomes: it would cost as much as all the rest. Calls are numbered as they come, so the old
# ones are the first ones, and `marks` has the number below which all have finished.
_SCHEMA = """
CREATE TABLE calls (
    number INTEGER PRIMARY KEY,
    caller TEXT NOT NULL,
    id BLOB NOT NULL,
    task_id TEXT NOT NULL,
    method TEXT NOT NULL,
    digest BLOB NOT NULL,
    began_at INTEGER NOT NULL,
    params BLOB,
    correlation_id TEXT,
    accepted INTEGER NOT NULL DEFAULT 0,
    runs INTEGER NOT NULL DEFAULT 1,
    result BLOB,
    error BLOB,
    finished_at INTEGER,
    UNIQUE (caller, id)
);
CREATE UNIQUE INDEX accepted_calls ON calls (task_id) WHERE accepted = 1;
CREATE TABLE marks (finished_below INTEGER NOT NULL);
INSERT INTO marks VALUES (0);
CREATE TABLE tokens (
    number INTEGER PRIMARY KEY,
    caller TEXT NOT NULL,
    token_id TEXT NOT NULL,
    until INTEGER NOT NULL,
    UNIQUE (caller, token_id)
);
CREATE TABLE refusals (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    caller TEXT NOT NULL,
    reason TEXT NOT NULL,
    method TEXT,
    correlation_id TEXT
);
"""
_SELECT = (
    "SELECT number, caller, id, task_id, method, digest, began_at, params, correlation_id, accepted, runs, result,"
    " error, finished_at FROM calls "
)
_UNFINISHED = f"""
{_SELECT} WHERE finished_at IS NULL AND number >= (SELECT finished_below FROM marks) ORDER BY number
"""  # noqa: S608 - constants of this module
_FORGET_CALLS = (
    "DELETE FROM calls WHERE finished_at < ? AND number IN (SELECT number FROM calls ORDER BY number LIMIT ?)"
)
_FORGET_TOKENS = (
    "DELETE FROM tokens WHERE until < ? AND number IN (SELECT number FROM tokens ORDER BY number LIMIT ?)"
)


class _Disk(Protocol):
    """Has what was written so far brought to the disk."""

    async def sync(self) -> None: ...


class ZoneFile:
    def __init__(self, db: apsw.Connection, disk: _Disk) -> None:
        self._db = db
        self._disk = disk
        # The numbers of the calls that have not finished, the oldest first.
        self._unfinished = {_call(row).key: int(row[0]) for row in _unfinished(db)}

    def begin(self, call: ZoneCall) -> ZoneCall | None:
        key = call.key
        with translated_errors():
            is_new = execute(
                self._db,
                "INSERT INTO calls (caller, id, task_id, method, digest, began_at, params, correlation_id)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (caller, id) DO NOTHING",
                (
                    key.caller,
                    key.id,
                    call.task_id,
                    call.method,
                    call.digest,
                    call.began_at,
                    call.params,
                    call.correlation_id,
                ),
            )
            if is_new:
                self._unfinished[key] = self._db.last_insert_rowid()
                return None
            row = first(self._db, _SELECT + "WHERE caller = ? AND id = ?", (key.caller, key.id))
        return None if row is None else _call(row)

    def begin_again(self, key: CallKey) -> None:
        with translated_errors():
            execute(self._db, "UPDATE calls SET runs = runs + 1 WHERE number = ?", (self._unfinished[key],))

    async def accept(self, key: CallKey) -> None:
        with translated_errors():
            execute(
                self._db,
                "UPDATE calls SET accepted = 1 WHERE caller = ? AND id = ? AND accepted = 0",
                (key.caller, key.id),
            )
        await self._disk.sync()

    def finish(
        self, key: CallKey, now: Instant, *, result: bytes | None = None, error: bytes | None = None
    ) -> None:
        number = self._unfinished.get(key)
        if number is None:
            return
        with translated_errors():
            execute(
                self._db,
                "UPDATE calls SET finished_at = ?, result = ?, error = ?, params = NULL WHERE number = ?",
                (now, result, error, number),
            )
        del self._unfinished[key]

    def call(self, caller: str, task_id: str) -> ZoneCall | None:
        with translated_errors():
            row = first(
                self._db,
                _SELECT + "WHERE task_id = ? AND accepted = 1 AND caller = ?",
                (task_id, caller),
            )
        return None if row is None else _call(row)

    def running(self) -> Sequence[ZoneCall]:
        with translated_errors():
            return [_call(row) for row in _unfinished(self._db)]

    def use_token(self, caller: str, token_id: str, until: Instant, now: Instant) -> bool:
        del now
        with translated_errors():
            return bool(
                execute(
                    self._db,
                    "INSERT INTO tokens (caller, token_id, until) VALUES (?, ?, ?)"
                    " ON CONFLICT (caller, token_id) DO NOTHING",
                    (caller, token_id, until),
                )
            )

    def note_refusal(self, refusal: Refusal) -> None:
        with translated_errors():
            execute(
                self._db,
                "INSERT INTO refusals (at, caller, reason, method, correlation_id) VALUES (?, ?, ?, ?, ?)",
                (refusal.at, refusal.caller, refusal.reason, refusal.method, refusal.correlation_id),
            )
            number = self._db.last_insert_rowid()
            if number % _REFUSALS_AT_ONCE == 0:
                execute(self._db, "DELETE FROM refusals WHERE number <= ?", (number - MOST_REFUSALS,))

    def refusals(self, limit: int) -> Sequence[Refusal]:
        with translated_errors():
            return _refusals(self._db, limit)

    def forget(self, before: Instant, now: Instant) -> int:
        with translated_errors():
            execute(self._db, "BEGIN IMMEDIATE")
            try:
                calls = execute(self._db, _FORGET_CALLS, (before, _FORGOTTEN_AT_ONCE))
                tokens = execute(self._db, _FORGET_TOKENS, (now, _FORGOTTEN_AT_ONCE))
                # Here and not later: numbers are given anew when the table is empty, and must not be below the mark.
                self._move_mark()
                execute(self._db, "COMMIT")
            except BaseException:
                # SQLite has rolled back by itself after some errors: then there is no transaction to end.
                if self._db.in_transaction:
                    execute(self._db, "ROLLBACK")
                raise
        return calls + tokens

    def _move_mark(self) -> None:
        oldest = next(iter(self._unfinished.values()), None)
        if oldest is None:
            row = first(self._db, "SELECT max(number) FROM calls")
            oldest = 0 if row is None or row[0] is None else int(row[0]) + 1
        execute(
            self._db,
            "UPDATE marks SET finished_below = ? WHERE finished_below <> ?",
            (oldest, oldest),
        )


class _File:
    """SQLite's log, which has everything that no checkpoint has brought to the database's own file and the disk."""

    def __init__(self, path: Path) -> None:
        self._log = path.with_name(path.name + "-wal")
        self._committer = Committer(self._sync)
        _sync(path.parent)

    async def sync(self) -> None:
        cancelled = await self._committer.commit()
        if cancelled is not None:
            raise cancelled

    def _sync(self) -> None:
        _sync(self._log)

    def close(self) -> None:
        self._committer.close()


class _Memory:
    async def sync(self) -> None: ...


@contextmanager
def open_zone_file(path: Path) -> Generator[ZoneFile]:
    """
    Makes the file if there is none.

    Raises `DataInUse` while another process has it, and `ConfigurationError` for a file that is none of ours.
    """
    check_library()
    make_folder(path.parent)
    with owned(path):
        make_file(path)
        with closing(connect(path)) as db:
            with translated_errors():
                _bring_to_schema(db, path)
                execute(db, "PRAGMA synchronous=NORMAL")
                file = _File(path)
                try:
                    store = ZoneFile(db, file)
                except BaseException:
                    file.close()
                    raise
            try:
                yield store
            finally:
                file.close()


@contextmanager
def zone_in_memory() -> Generator[ZoneFile]:
    """For a zone that need not remember anything over its restarts."""
    with closing(connect(Path(":memory:"))) as db:
        _bring_to_schema(db, Path(":memory:"))
        yield ZoneFile(db, _Memory())


def read_refusals(path: Path, limit: int) -> Sequence[Refusal]:
    """From the file of a zone that may be running."""
    if not path.exists():
        raise ConfigurationError(f"There is no {path}.", fix="Name the zone's data folder with --data.")
    with translated_errors(), closing(connect(path)) as db:
        _check_schema(db, path)
        return _refusals(db, limit)


def _bring_to_schema(db: apsw.Connection, path: Path) -> None:
    if _version(db) == 0 and first(db, "SELECT 1 FROM sqlite_master LIMIT 1") is None:
        # All of it or nothing: a file with half a schema could never be opened again.
        with db:
            execute(db, _SCHEMA)
            execute(db, f"PRAGMA user_version = {SCHEMA_VERSION}")
    _check_schema(db, path)


def _check_schema(db: apsw.Connection, path: Path) -> None:
    version = _version(db)
    if version > SCHEMA_VERSION:
        raise ConfigurationError(
            f"{path} is of version {version}, and this program knows up to {SCHEMA_VERSION}.",
            fix="Start the newer version of Trunkline that wrote it, or choose another folder with --data.",
        )
    if version < SCHEMA_VERSION:
        raise ConfigurationError(
            f"{path} holds tables of another program.", fix="Choose another folder with --data."
        )


def _version(db: apsw.Connection) -> int:
    row = first(db, "PRAGMA user_version")
    return 0 if row is None else int(row[0])


def _sync(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as exc:
        raise Unavailable(f"{path} could not be brought to the disk: {exc.strerror or exc}.") from exc


def _unfinished(db: apsw.Connection) -> Sequence[Row]:
    return list(rows(db, _UNFINISHED))


def _call(row: Row) -> ZoneCall:
    (_, caller, id_, task_id, method, digest, began_at, params, correlation_id, accepted, runs, *end) = row
    result, error, finished_at = end
    return ZoneCall(
        key=CallKey(caller, id_),
        task_id=task_id,
        method=method,
        digest=digest,
        began_at=began_at,
        params=params,
        correlation_id=correlation_id,
        status="running" if finished_at is None else "finished",
        accepted=bool(accepted),
        runs=runs,
        result=result,
        error=error,
        finished_at=finished_at,
    )


def _refusals(db: apsw.Connection, limit: int) -> Sequence[Refusal]:
    found = rows(
        db,
        "SELECT at, caller, reason, method, correlation_id FROM refusals ORDER BY number DESC LIMIT ?",
        (min(limit, MOST_REFUSALS),),
    )
    return [
        Refusal(at=at, caller=caller, reason=reason, method=method, correlation_id=correlation_id)
        for at, caller, reason, method, correlation_id in found
    ]
