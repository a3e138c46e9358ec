"""
A zone's file: SQLite, one process.

Statements run on the event loop's own thread and do not wait for the disk (`synchronous=NORMAL`): the operating system
has what they wrote, which the death of the process does not change. `accept` has SQLite's log synced in a thread;
the loop goes on meanwhile, which it could not if a commit waited for the disk and kept the next one out.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Protocol

import apsw

from trunkline.clock import Instant
from trunkline.errors import Unavailable
from trunkline.stores.sqlite.database.committer import Committer
from trunkline.stores.sqlite.database.connection import (
    check_library,
    connect,
    make_file,
    make_folder,
    owned,
    translated_errors,
)
from trunkline.stores.sqlite.database.statements import Row, execute, first, rows
from trunkline.stores.zones import CallKey, RefusedCall, ZoneCall
from trunkline.stores.zones.refusals import Refusals, refusals_file
from trunkline.stores.zones.schema import FileSchema, bring_to

# Deleted at once: the zone does not answer for these few milliseconds.
_FORGOTTEN_AT_ONCE = 500

# No index on what a call becomes: it would cost as much as all the rest. Calls are numbered as they come, so the old
# ones are the first ones, and `marks` has the number below which all have finished.
_SCHEMA = FileSchema(
    version=1,
    script="""
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
""",
)
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
    def __init__(self, db: apsw.Connection, refusals: Refusals, disk: _Disk) -> None:
        self._db = db
        self._refusals = refusals
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

    def note_refusal(self, refusal: RefusedCall) -> None:
        self._refusals.note(refusal)

    def refusals(self, limit: int) -> Sequence[RefusedCall]:
        return self._refusals.newest(limit)

    def forget(self, before: Instant, now: Instant) -> int:
        with translated_errors():
            execute(self._db, "BEGIN IMMEDIATE")
            try:
                calls = execute(self._db, _FORGET_CALLS, (before, _FORGOTTEN_AT_ONCE))
                tokens = execute(self._db, _FORGET_TOKENS, (now, _FORGOTTEN_AT_ONCE))
                # Here and not later: numbering restarts when the table is empty, and must not fall below the mark.
                self._move_mark()
                execute(self._db, "COMMIT")
            except BaseException:
                # After some errors SQLite has already rolled back, and the transaction is over.
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


class _Log:
    """SQLite's log, which has everything that no checkpoint has brought to the database's own file and the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + "-wal")
        self._asked = 0
        # The thread's own: how many it has answered, and up to which one they are served.
        self._answered = 0
        self._served = 0
        self._failure: Unavailable | None = None
        _sync(path.parent)
        self._committer = Committer(self._answer)

    async def sync(self) -> None:
        self._asked += 1
        cancelled = await self._committer.commit()
        if cancelled is not None:
            raise cancelled

    def _answer(self) -> None:
        """Many who ask at once are served by one wait for the disk."""
        self._answered += 1
        if self._answered <= self._served:
            return
        if self._failure is not None:
            # The system forgets what it failed to write, and the next time says that all is well.
            raise Unavailable(self._failure.message, fix=self._failure.fix)
        asked = self._asked
        try:
            _sync(self._path)
        except Unavailable as exc:
            self._failure = exc
            raise
        self._served = asked

    def close(self) -> None:
        self._committer.close()


class _Memory:
    async def sync(self) -> None: ...


@contextmanager
def open_zone_file(path: Path) -> Generator[ZoneFile]:
    """
    Makes the file if there is none.

    Raises `DataInUse` while another process has it, and `ConfigurationError` for a file of another program.
    """
    check_library()
    make_folder(path.parent)
    with owned(path), ExitStack() as stack:
        with translated_errors():
            db = stack.enter_context(_opened(path))
            bring_to(_SCHEMA, db, path)
            execute(db, "PRAGMA synchronous=NORMAL")
            # Other processes cannot read it either: taking the lock for each statement costs a third of its time.
            execute(db, "PRAGMA locking_mode=EXCLUSIVE")
            audit = refusals_file(path)
            refusals = Refusals(audit, stack.enter_context(_opened(audit)))
            log = stack.enter_context(closing(_Log(path)))
            store = ZoneFile(db, refusals, log)
        yield store


@contextmanager
def zone_in_memory() -> Generator[ZoneFile]:
    """For a zone that need not remember anything over its restarts."""
    nowhere = Path(":memory:")
    with closing(connect(nowhere)) as db, closing(connect(nowhere)) as audit:
        bring_to(_SCHEMA, db, nowhere)
        yield ZoneFile(db, Refusals(nowhere, audit), _Memory())


def _opened(path: Path) -> closing[apsw.Connection]:
    make_file(path)
    return closing(connect(path))


def _sync(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as exc:
        raise Unavailable(
            f"Cannot flush {path} to disk: {exc.strerror or exc}.",
            fix="Check the disk, then start the zone again.",
        ) from exc


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
