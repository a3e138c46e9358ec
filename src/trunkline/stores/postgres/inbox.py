"""Inbox and timers: what wakes a run."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.base import InboxItem, WokenRun
from trunkline.stores.postgres.driver import Session, columns
from trunkline.stores.postgres.texts import as_uuid, restored

# Runs that another executor has locked must not hide those behind them.
_LOOK_FURTHER = 8

# Numbered in the order given, inserted in the order of the runs: two processes that bring the same items do not wait
# for one another.
_PUT = """
    INSERT INTO inbox(id, run_id, key, payload)
    SELECT numbered.row, numbered.run_id, numbered.key, numbered.payload FROM (
        SELECT nextval('inbox_id_seq') AS row, given.run_id, given.key, given.payload, given.place FROM (
            SELECT new.run_id, new.key, new.payload, new.place
            FROM unnest($1::uuid[], $2::text[], $3::bytea[]) WITH ORDINALITY AS new(run_id, key, payload, place)
                JOIN runs ON runs.id = new.run_id
            ORDER BY new.place
        ) AS given
    ) AS numbered
    ORDER BY numbered.run_id, numbered.place
    ON CONFLICT (run_id, key) DO NOTHING
"""
_OLDEST = "SELECT id, run_id FROM inbox WHERE applied = 0 ORDER BY id LIMIT $1"
_LOCK = f"""
    SELECT runs.id::text, woken.seen_to, woken.seen
    FROM (
        SELECT oldest.run_id, min(oldest.id) AS first_row,
            max(max(oldest.id)) OVER () AS seen_to, sum(count(*)) OVER () AS seen
        FROM ({_OLDEST}) AS oldest GROUP BY oldest.run_id
    ) AS woken JOIN runs ON runs.id = woken.run_id
    ORDER BY woken.first_row LIMIT $2 FOR NO KEY UPDATE OF runs SKIP LOCKED
"""  # noqa: S608 - constants of this module
_READ = """
    SELECT inbox.id, inbox.run_id::text, inbox.payload, runs.version
    FROM inbox JOIN runs ON runs.id = inbox.run_id
    WHERE inbox.applied = 0 AND inbox.id <= $2 AND inbox.run_id = ANY($1::uuid[]) ORDER BY inbox.id LIMIT $3
"""
_END = 2**63 - 1
_TAKE_DUE = """
    WITH due AS MATERIALIZED (
        SELECT run_id, key FROM timers WHERE due <= $1 ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM timers USING due WHERE timers.run_id = due.run_id AND timers.key = due.key
    RETURNING timers.due, timers.run_id::text, timers.key, timers.payload
"""


async def put_inbox(db: Session, items: Sequence[InboxItem]) -> None:
    rows = [(item.run_id, item.key, item.payload) for item in items if as_uuid(item.run_id)]
    if rows:
        await db.execute(_PUT, *columns(rows, 3))


async def claim_woken_runs(db: Session, limit: int) -> list[WokenRun]:
    looked_at = limit * _LOOK_FURTHER
    locked = await db.rows(_LOCK, looked_at, limit)
    if not locked:
        return []
    _, seen_to, seen = locked[0]
    run_ids = [run_id for run_id, *_ in locked]
    # A statement of its own, so that it sees what others have committed before they let go of these runs: what they
    # have applied must not be applied again. Rows behind those that were looked at are for the next turn.
    found = await db.rows(_READ, run_ids, seen_to if seen == looked_at else _END, limit)
    woken: dict[RunId, WokenRun] = {}
    for row, run_id, payload, version in found:
        run = woken.get(run_id)
        if run is None:
            run = woken[run_id] = WokenRun(run_id, version, [])
        run.items.append((row, payload))
    return list(woken.values())


async def take_due_timers(db: Session, now: Instant, limit: int) -> int:
    due = sorted(await db.rows(_TAKE_DUE, now, limit), key=tuple)
    await put_inbox(
        db, [InboxItem(RunId(run_id), f"timer/{restored(key)}", payload) for _, run_id, key, payload in due]
    )
    return len(due)


async def next_timer(db: Session) -> Instant | None:
    row = await db.first("SELECT min(due) FROM timers")
    return None if row is None else row[0]
