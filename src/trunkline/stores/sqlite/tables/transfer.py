"""Whole tables, for a move to another store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apsw

from trunkline.clock import Instant
from trunkline.stores.port.transfer import TASKS, Batches, Table, TableRow
from trunkline.stores.sqlite.database.statements import execute, execute_many, rows

# Tombstones once had no run; a task's id begins with its run's id and a slash.
_RUN_OF_TASK = "iif(run_id = '', substr(task_id, 1, instr(task_id, '/') - 1), run_id)"


def dump(db: apsw.Connection, table: Table) -> Iterator[list[TableRow]]:
    columns = ", ".join(_selected(table, column) for column in table.columns)
    batches = Batches()
    # As they were written: the steps of a run are in the order in which they were begun.
    for row in rows(db, f"SELECT {columns} FROM {table.name} ORDER BY rowid"):  # noqa: S608 - constants only
        yield from batches.add(row)
    yield from batches.rest()


def _selected(table: Table, column: str) -> str:
    return _RUN_OF_TASK if table is TASKS and column == "run_id" else f'"{column}"'


def load(db: apsw.Connection, table: Table, batch: Sequence[TableRow]) -> None:
    columns = ", ".join(f'"{column}"' for column in table.columns)
    places = ", ".join("?" for _ in table.columns)
    execute_many(db, f"INSERT INTO {table.name}({columns}) VALUES ({places})", batch)  # noqa: S608 - constants only


def mark_moved(db: apsw.Connection, now: Instant) -> None:
    execute(db, "INSERT INTO moves(at) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM moves)", (now,))
