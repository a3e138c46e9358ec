"""
Running statements through apsw, typed.

On Python 3.11 the driver's own annotations name a type that is not there (`collections.abc.Buffer`); this is
the one place that works around it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import apsw

Value: TypeAlias = str | bytes | int | float | None
# The statement decides what a column holds; no checker can know.
Row: TypeAlias = tuple[Any, ...]
T = TypeVar("T")

# Statements with more than this are run in a thread: copying it would keep the event loop from everything else.
LARGE_BYTES = 1024 * 1024


async def run_statements(work: Callable[[], T], size_bytes: int) -> T:
    """
    Runs statements whose values have so many bytes together, in a thread if they are many.

    It ends with the statements, whatever happens to the caller: until then the connection is in use.
    """
    if size_bytes <= LARGE_BYTES:
        return work()
    running = asyncio.get_running_loop().run_in_executor(None, work)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        raise cancelled
    return running.result()


def rows(db: apsw.Connection, sql: str, values: Sequence[Value] = ()) -> Iterator[Row]:
    """Runs `sql`; the rows must be read to the end, or a writing statement is not finished."""
    cursor = db.execute(sql, values)  # pyright: ignore[reportUnknownMemberType] - see the module
    return cast("Iterator[Row]", cursor)


def first(db: apsw.Connection, sql: str, values: Sequence[Value] = ()) -> Row | None:
    """The first row of a query, or None."""
    found = list(rows(db, sql, values))
    return found[0] if found else None


def execute(db: apsw.Connection, sql: str, values: Sequence[Value] = ()) -> int:
    """Runs statements to their end; the number of rows that the last one changed."""
    for _ in rows(db, sql, values):
        pass
    return db.changes()


def is_duplicate(exc: apsw.ConstraintError) -> bool:
    """True if a row with the same key exists; False for a faulty statement."""
    # Set on every error that SQLite reports, and missing from the driver's annotations.
    code: object = getattr(exc, "extendedresult", None)
    return code in {apsw.SQLITE_CONSTRAINT_UNIQUE, apsw.SQLITE_CONSTRAINT_PRIMARYKEY}


def query_many(db: apsw.Connection, sql: str, batch: Sequence[Sequence[Value]]) -> Iterator[Row]:
    """Runs one query for every member of a batch; all their rows, to be read to the end."""
    cursor = db.executemany(sql, batch)  # pyright: ignore[reportUnknownMemberType] - see the module
    return cast("Iterator[Row]", cursor)


def changes_of_many(db: apsw.Connection, sql: str, batch: Sequence[Sequence[Value]]) -> list[bool]:
    """Runs one statement for every member of a batch; for each, whether it changed a row."""
    return [changes > 0 for changes in _after_each(db, sql, batch, db.changes)]


def inserted_rows(db: apsw.Connection, sql: str, batch: Sequence[Sequence[Value]]) -> list[int | None]:
    """Runs one INSERT for every member of a batch; for each, the number of its row, or None if there is none."""
    return _after_each(db, sql, batch, lambda: db.last_insert_rowid() if db.changes() else None)


def _after_each(
    db: apsw.Connection, sql: str, batch: Sequence[Sequence[Value]], look: Callable[[], T]
) -> list[T]:
    seen: list[T] = []

    def bindings() -> Iterator[Sequence[Value]]:
        # The driver asks for the next member when the statement is done with the one before. `RETURNING` would say the
        # same for twice the cost of the whole statement.
        for number, member in enumerate(batch):
            if number:
                seen.append(look())
            yield member

    execute_many(db, sql, bindings())
    if batch:
        seen.append(look())
    return seen


def execute_many(db: apsw.Connection, sql: str, batch: Iterable[Sequence[Value]]) -> None:
    """Runs one statement for every member of a batch."""
    db.executemany(sql, batch)  # pyright: ignore[reportUnknownMemberType] - see the module
