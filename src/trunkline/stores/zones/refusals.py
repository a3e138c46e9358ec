"""
The calls that a zone has rejected, in a separate file that can be read while the zone runs.

The zone keeps everybody else off its other file, since a lock for each call costs a third of writing it down.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw

from trunkline.errors import ConfigurationError
from trunkline.stores.sqlite.database.connection import connect, translated_errors
from trunkline.stores.sqlite.database.statements import execute, rows
from trunkline.stores.zones import RefusedCall
from trunkline.stores.zones.schema import FileSchema, bring_to, check

MOST_REFUSALS = 10_000
# They come in floods; the oldest are deleted by so many.
_DELETED_AT_ONCE = 100

SCHEMA = FileSchema(
    version=1,
    script="""
CREATE TABLE refusals (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    caller TEXT NOT NULL,
    reason TEXT NOT NULL,
    method TEXT,
    correlation_id TEXT
);
""",
)


def refusals_file(path: Path) -> Path:
    """The one that belongs to a zone's file."""
    return path.with_name(f"{path.stem}-audit{path.suffix}")


class Refusals:
    def __init__(self, path: Path, db: apsw.Connection) -> None:
        self._db = db
        bring_to(SCHEMA, db, path)
        execute(db, "PRAGMA synchronous=NORMAL")

    def note(self, refusal: RefusedCall) -> None:
        with translated_errors():
            execute(
                self._db,
                "INSERT INTO refusals (at, caller, reason, method, correlation_id) VALUES (?, ?, ?, ?, ?)",
                (refusal.at, refusal.caller, refusal.reason, refusal.method, refusal.correlation_id),
            )
            number = self._db.last_insert_rowid()
            if number % _DELETED_AT_ONCE == 0:
                execute(self._db, "DELETE FROM refusals WHERE number <= ?", (number - MOST_REFUSALS,))

    def newest(self, limit: int) -> Sequence[RefusedCall]:
        with translated_errors():
            return _newest(self._db, limit)


def read_refusals(path: Path, limit: int) -> Sequence[RefusedCall]:
    """The newest, of the zone with this file, which may be running."""
    audit = refusals_file(path)
    if not audit.exists():
        raise ConfigurationError(
            f"The file {audit} does not exist.", fix="Pass the zone's data folder with --data."
        )
    with translated_errors(), closing(connect(audit)) as db:
        check(SCHEMA, db, audit)
        return _newest(db, limit)


def _newest(db: apsw.Connection, limit: int) -> Sequence[RefusedCall]:
    found = rows(
        db,
        "SELECT at, caller, reason, method, correlation_id FROM refusals ORDER BY number DESC LIMIT ?",
        (min(limit, MOST_REFUSALS),),
    )
    return [
        RefusedCall(at=at, caller=caller, reason=reason, method=method, correlation_id=correlation_id)
        for at, caller, reason, method, correlation_id in found
    ]
