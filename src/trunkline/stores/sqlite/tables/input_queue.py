"""The queue of each run's inputs (the table `inbox`), and timers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import apsw

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.port.input_queue import QueuedInput, WokenRun
from trunkline.stores.sqlite.database.group_base import SqliteWrites
from trunkline.stores.sqlite.database.statements import execute_many, first, inserted_rows, query_many, rows

_UNAPPLIED = """
    SELECT inbox.id, inbox.run_id, inbox.payload, runs.version FROM inbox JOIN runs ON runs.id = inbox.run_id
    WHERE inbox.applied = 0 ORDER BY inbox.id LIMIT ?
"""


class SqliteInputQueue:
    """
    The input queues as one transaction sees them.

    Nearly every row is applied in the transaction that made it. So each is written as applied at once, for a duplicate
    to find, and its payload is held here; `write_held` gives it to the rows that are left over. An input that can come
    only once has no row, unless it is left over.
    """

    __slots__ = ("_db", "_held", "_known_versions", "_next_place", "_versions")

    def __init__(self, db: apsw.Connection, known_versions: Callable[[RunId], int | None]) -> None:
        """`known_versions`: of runs as they were committed, if that is known without reading."""
        self._db = db
        self._known_versions = known_versions
        # By row, or by a negative number if it has none.
        self._held: dict[int, QueuedInput] = {}
        self._next_place = -1
        # Of the runs that they are for.
        self._versions: dict[RunId, int] = {}

    async def put(self, items: Sequence[QueuedInput]) -> None:
        self.put_now(items)

    def put_now(self, items: Sequence[QueuedInput]) -> None:
        self._find_versions(items)
        wanted = [item for item in items if item.run_id in self._versions]
        remembered = [(item.run_id, item.key) for item in wanted if not item.is_once]
        written = iter(
            inserted_rows(
                self._db,
                "INSERT INTO inbox(run_id, key, payload, applied) VALUES (?, ?, x'', 1)"
                " ON CONFLICT(run_id, key) DO NOTHING",
                remembered,
            )
            if remembered
            else ()
        )
        for item in wanted:
            if item.is_once:
                self._held[self._next_place] = item
                self._next_place -= 1
            elif (row := next(written)) is not None:
                self._held[row] = item

    def _find_versions(self, items: Sequence[QueuedInput]) -> None:
        versions = self._versions
        unknown: set[RunId] = set()
        for item in items:
            run_id = item.run_id
            if run_id not in versions:
                known = self._known_versions(run_id)
                if known is None:
                    unknown.add(run_id)
                else:
                    versions[run_id] = known
        if unknown:
            asked = [(run_id,) for run_id in unknown]
            versions.update(query_many(self._db, "SELECT id, version FROM runs WHERE id = ?", asked))

    def note_new_runs(self, run_ids: Iterable[RunId]) -> None:
        """This transaction has inserted them."""
        self._versions.update(dict.fromkeys(run_ids, 0))

    async def claim_runs(self, limit: int) -> list[WokenRun]:
        # The writer's transaction is the claim: nothing else can write meanwhile.
        woken: dict[RunId, WokenRun] = {}
        taken = 0
        for row, run_id, payload, version in rows(self._db, _UNAPPLIED, (limit,)):
            woken.setdefault(run_id, WokenRun(run_id, version, [])).items.append((row, payload))
            taken += 1
        for row, item in list(self._held.items())[: limit - taken]:
            run = woken.get(item.run_id)
            if run is None:
                run = woken[item.run_id] = WokenRun(item.run_id, self._versions[item.run_id], [])
            run.items.append((row, item.item))
        return list(woken.values())

    def apply(self, run_id: RunId, version: int, applied: Iterable[int]) -> None:
        """The run has applied these, and is at `version` now."""
        if run_id in self._versions:
            self._versions[run_id] = version
        earlier = [(row,) for row in applied if self._held.pop(row, None) is None]
        if earlier:
            # The row stays, so that a duplicate finds it; what it said is in the state now.
            execute_many(self._db, "UPDATE inbox SET applied = 1, payload = x'' WHERE id = ?", earlier)

    def write_held(self) -> None:
        """What no run has applied is for the next transaction."""
        if not self._held:
            return
        if self._next_place < -1:
            # In one order with those that have no row yet.
            execute_many(
                self._db, "DELETE FROM inbox WHERE id = ?", [(row,) for row in self._held if row > 0]
            )
            left = [(item.run_id, item.key, item.payload) for item in self._held.values()]
            execute_many(
                self._db,
                "INSERT INTO inbox(run_id, key, payload, applied) VALUES (?, ?, ?, 0)"
                " ON CONFLICT(run_id, key) DO NOTHING",
                left,
            )
        else:
            given = [(item.payload, row) for row, item in self._held.items()]
            execute_many(self._db, "UPDATE inbox SET applied = 0, payload = ? WHERE id = ?", given)
        self._held = {}

    def reset(self) -> None:
        """The database has gone back to a savepoint, before which nothing was held."""
        self._held, self._versions = {}, {}


class SqliteTimerWrites(SqliteWrites):
    __slots__ = ("_input_queue",)

    def __init__(self, db: apsw.Connection, now: Instant, input_queue: SqliteInputQueue) -> None:
        # Not by `super().__init__`: every transaction makes one.
        self._db, self._now = db, now
        self._input_queue = input_queue

    async def fire_due(self, limit: int) -> int:
        due = list(
            rows(
                self._db,
                "SELECT rowid, run_id, key, payload FROM timers WHERE due <= ? ORDER BY due LIMIT ?",
                (self._now, limit),
            )
        )
        if due:
            execute_many(self._db, "DELETE FROM timers WHERE rowid = ?", ((row[0],) for row in due))
        self._input_queue.put_now(
            [QueuedInput(RunId(run_id), f"timer/{key}", payload) for _, run_id, key, payload in due]
        )
        return len(due)

    async def next_due(self) -> Instant | None:
        row = first(self._db, "SELECT min(due) FROM timers")
        return None if row is None else row[0]
