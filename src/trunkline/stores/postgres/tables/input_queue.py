"""The queue of each run's inputs (the table `inbox`), and timers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.port.input_queue import QueuedInput, WokenRun
from trunkline.stores.postgres.database.group_base import PostgresWrites
from trunkline.stores.postgres.database.session import Column, Session, columns
from trunkline.stores.postgres.database.text_encoding import as_uuid, restored
from trunkline.stores.rows import Row

# Runs that another executor has locked must not hide those behind them.
_LOOK_FURTHER = 8

# Numbered in the order given, inserted in the order of the runs: two processes that bring the same items do not wait
# for one another. Of the runs in $4 the items are written as applied, without what they say.
_PUT = """
    INSERT INTO inbox(id, run_id, key, payload, applied)
    SELECT numbered.row, numbered.run_id, numbered.key,
        CASE WHEN numbered.is_ours THEN '' ELSE numbered.payload END, CASE WHEN numbered.is_ours THEN 1 ELSE 0 END
    FROM (
        SELECT nextval('inbox_id_seq') AS row, given.* FROM (
            SELECT new.run_id, new.key, new.payload, new.place, new.run_id = ANY($4::uuid[]) AS is_ours
            FROM unnest($1::uuid[], $2::text[], $3::bytea[]) WITH ORDINALITY AS new(run_id, key, payload, place)
                JOIN runs ON runs.id = new.run_id
            ORDER BY new.place
        ) AS given
    ) AS numbered
    ORDER BY numbered.run_id, numbered.place
    ON CONFLICT (run_id, key) DO NOTHING
"""
_LOCK = """
    WITH oldest AS MATERIALIZED (SELECT id, run_id FROM inbox WHERE applied = 0 ORDER BY id LIMIT $1),
    woken AS (
        SELECT run_id, min(id) AS first_row
        FROM (SELECT id, run_id FROM oldest UNION ALL SELECT $4::bigint, unnest($3::uuid[])) AS either
        GROUP BY run_id
    )
    SELECT runs.id::text, runs.version, woken.first_row, (SELECT count(*) FROM oldest)
    FROM woken JOIN runs ON runs.id = woken.run_id
    ORDER BY woken.first_row LIMIT $2 FOR NO KEY UPDATE OF runs SKIP LOCKED
"""
# `IS TRUE` keeps the runs from choosing the index: a long run has many rows that were applied.
_READ = """
    SELECT id, run_id::text, payload FROM inbox
    WHERE applied = 0 AND id <= $2 AND (run_id IN (SELECT unnest($1::uuid[]))) IS TRUE ORDER BY id LIMIT $3
"""
_PUT_BACK = """
    UPDATE inbox SET applied = 0, payload = kept.payload FROM unnest($1::bigint[], $2::bytea[]) AS kept(id, payload)
    WHERE inbox.id = kept.id
"""
_END = 2**63 - 1
_TAKE_DUE = """
    WITH due AS MATERIALIZED (
        SELECT run_id, key FROM timers WHERE due <= $1 ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM timers USING due WHERE timers.run_id = due.run_id AND timers.key = due.key
    RETURNING timers.due, timers.run_id::text, timers.key, timers.payload
"""


class PostgresInputQueue:
    """
    The input queues as one transaction sees them.

    Nearly every input that an executor puts is applied in the transaction that put it. So inputs wait here until
    their runs are claimed, and those of claimed runs are written as applied at once, for a duplicate to find;
    `write_held` gives the rest to other transactions.
    """

    __slots__ = ("_db", "_held", "_versions", "_waiting")

    def __init__(self, db: Session) -> None:
        self._db = db
        # Not written yet.
        self._waiting: list[QueuedInput] = []
        # Written as applied, by row: no transition has applied them yet.
        self._held: dict[int, QueuedInput] = {}
        # Of the runs that are claimed.
        self._versions: dict[RunId, int] = {}

    async def put(self, items: Sequence[QueuedInput]) -> None:
        self.put_now(items)

    def put_now(self, items: Iterable[QueuedInput]) -> None:
        self._waiting += [item for item in items if as_uuid(item.run_id)]

    async def claim_runs(self, limit: int) -> list[WokenRun]:
        looked_at = limit * _LOOK_FURTHER
        brought = sorted({item.run_id for item in self._waiting})
        locked = await self._db.rows(_LOCK, looked_at, limit, brought, _END)
        self._versions.update({run_id: version for run_id, version, _, _ in locked})
        await self._hold()
        found: list[Row] = []
        seen = locked[0][3] if locked else 0
        if seen:
            # With many that wait, those behind the first ones of these runs are for the next turn.
            last = max(first_row for _, _, first_row, _ in locked) if seen == looked_at else _END
            # A statement of its own, so that it sees what others have committed before they let go of these runs: what
            # they have applied must not be applied again.
            found = await self._db.rows(_READ, sorted(self._versions), last, limit)
        return self._woken(found, limit)

    async def _hold(self) -> None:
        """Writes what waits; what is for a claimed run is held."""
        if not self._waiting:
            return
        by_key: dict[tuple[str, str], QueuedInput] = {}
        for item in self._waiting:
            by_key.setdefault((item.run_id, item.key), item)
        written = await self._db.rows(
            f"{_PUT} RETURNING id, run_id::text, key, applied",
            *_columns(self._waiting),
            sorted(self._versions),
        )
        self._waiting = []
        for row, run_id, key, applied in sorted(written, key=lambda row: row[0]):
            if applied:
                self._held[row] = by_key[run_id, restored(key)]

    def _woken(self, found: Sequence[Row], limit: int) -> list[WokenRun]:
        held = [(row, item.run_id, item.payload) for row, item in self._held.items()]
        woken: dict[RunId, WokenRun] = {}
        for row, run_id, payload in [*found, *held][:limit]:
            run = woken.get(run_id)
            if run is None:
                run = woken[run_id] = WokenRun(run_id, self._versions[run_id], [])
            run.items.append((row, payload))
        return list(woken.values())

    def not_held(self, rows: Iterable[int]) -> list[int]:
        """Those of the rows that are not marked as applied yet."""
        return [row for row in rows if row not in self._held]

    def apply(self, run_id: RunId, version: int, rows: Iterable[int]) -> None:
        """The run has applied these, and is at `version` now."""
        if run_id in self._versions:
            self._versions[run_id] = version
        for row in rows:
            self._held.pop(row, None)

    async def write_held(self) -> None:
        """What no run has applied is for other transactions."""
        if self._waiting:
            await self._db.execute(_PUT, *_columns(self._waiting), [])
            self._waiting = []
        if self._held:
            left = [(row, item.payload) for row, item in self._held.items()]
            await self._db.execute(_PUT_BACK, *columns(left, 2))
            self._held = {}

    def reset(self) -> None:
        """The database has gone back to a savepoint, before which nothing was held."""
        self._waiting, self._held, self._versions = [], {}, {}


def _columns(items: Sequence[QueuedInput]) -> list[Column]:
    return columns([(item.run_id, item.key, item.payload) for item in items], 3)


class PostgresTimerWrites(PostgresWrites):
    __slots__ = ("_input_queue",)

    def __init__(self, db: Session, now: Instant, input_queue: PostgresInputQueue) -> None:
        super().__init__(db, now)
        self._input_queue = input_queue

    async def fire_due(self, limit: int) -> int:
        due = sorted(await self._db.rows(_TAKE_DUE, self._now, limit), key=tuple)
        self._input_queue.put_now(
            QueuedInput(RunId(run_id), f"timer/{restored(key)}", payload) for _, run_id, key, payload in due
        )
        return len(due)

    async def next_due(self) -> Instant | None:
        row = await self._db.first("SELECT min(due) FROM timers")
        return None if row is None else row[0]
