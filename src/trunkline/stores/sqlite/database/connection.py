"""
SQLite connections, and the lock that keeps a second process off the file.

Only apsw touches the file: a second SQLite library in the same process would drop the first one's locks when it
closes the file.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw

from trunkline.errors import ConfigurationError, DataInUse, Unavailable
from trunkline.stores.sqlite.database.statements import execute

# Older versions can corrupt a WAL under several connections.
OLDEST_SQLITE = (3, 51, 3)

# 32 MB of WAL between checkpoints: each costs a few fsyncs of the main file.
_CHECKPOINT_PAGES = 8_000
# Of each connection: runs are written and read near their end, which needs few pages.
_CACHE_KIBIBYTES = 1_000
_BUSY_MILLISECONDS = 5_000
# Each use of a statement takes the next place in the driver's cache, round and round: with fewer places than one
# transaction has uses, those that run once in it are pushed out and parsed again. 512 is the most it allows.
_CACHED_STATEMENTS = 512


def check_library() -> None:
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < OLDEST_SQLITE:
        wanted = ".".join(str(part) for part in OLDEST_SQLITE)
        raise ConfigurationError(
            f"SQLite {apsw.sqlite_lib_version()} is too old: Trunkline needs {wanted} or newer, "
            "because older versions can corrupt a shared WAL.",
            fix="Install a newer apsw: pip install --upgrade apsw.",
        )


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise ConfigurationError(
            f"Cannot create the data folder {folder}: {exc.strerror or exc}.",
            fix="Check the path and its permissions, or choose another folder with --data.",
        ) from exc


def make_file(path: Path) -> None:
    """An empty database that only its owner can read: what agents say is in it."""
    try:
        path.touch(mode=0o600)
    except OSError as exc:
        raise ConfigurationError(
            f"Cannot write to {path}: {exc.strerror or exc}.",
            fix="Check the folder's permissions, or choose another folder with --data.",
        ) from exc


def connect(path: Path) -> apsw.Connection:
    try:
        db = apsw.Connection(str(path), statementcachesize=_CACHED_STATEMENTS)
        db.set_busy_timeout(_BUSY_MILLISECONDS)
        # Otherwise SQLite plans for the bound values, and parses `LIMIT ?` again for each execution.
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        execute(db, "PRAGMA journal_mode=WAL")
        execute(db, "PRAGMA synchronous=FULL")
        execute(db, f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
        execute(db, f"PRAGMA cache_size=-{_CACHE_KIBIBYTES}")
        execute(db, "PRAGMA temp_store=MEMORY")
    except apsw.NotADBError as exc:
        raise ConfigurationError(
            f"{path} is not a SQLite database.", fix="Use another file, or move this one elsewhere."
        ) from exc
    except apsw.Error as exc:
        raise ConfigurationError(
            f"Cannot open {path}: {exc}", fix="Check the folder and its permissions."
        ) from exc
    return db


class _TranslatedErrors:
    # Not a generator: each transaction enters one, and a generator costs as much as a statement.
    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        match error:
            case None:
                return
            case apsw.FullError():
                raise Unavailable(
                    "The disk is full.", fix="Free some disk space. Nothing is lost."
                ) from error
            case (
                apsw.IOError()
                | apsw.BusyError()
                | apsw.ReadOnlyError()
                | apsw.CorruptError()
                | apsw.CantOpenError()
            ):
                raise Unavailable(f"Cannot use the database: {error}") from error
            case _:
                return


_translated_errors = _TranslatedErrors()


def translated_errors() -> _TranslatedErrors:
    """What SQLite says when it cannot go on, as what we tell our users."""
    return _translated_errors


@contextmanager
def owned(path: Path) -> Generator[None]:
    """Holds the lock of a database file; the operating system gives it back when the process ends, however it ends."""
    lock = path.with_name(path.name + ".lock")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as exc:
        raise ConfigurationError(
            f"Cannot write to {lock}: {exc.strerror or exc}.",
            fix="Check the folder's permissions, or choose another folder with --data.",
        ) from exc
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise DataInUse(f"{path} is in use by another Trunkline process ({owner}).") from exc
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
