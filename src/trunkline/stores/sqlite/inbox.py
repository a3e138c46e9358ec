"""Inbox and timers: what wakes a run."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.base import InboxItem, WokenRun
from trunkline.stores.sqlite.driver import execute_many, first, rows


def put_inbox(db: apsw.Connection, items: Sequence[InboxItem]) -> None:
    execute_many(
        db,
        "INSERT INTO inbox(run_id, key, payload) SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM runs WHERE id = ?1)"
        " ON CONFLICT(run_id, key) DO NOTHING",
        ((item.run_id, item.key, item.payload) for item in items),
    )


def claim_woken_runs(db: apsw.Connection, limit: int) -> list[WokenRun]:
    # The writer's transaction is the claim: nobody else can write meanwhile.
    unapplied = rows(
        db,
        "SELECT inbox.id, inbox.run_id, inbox.payload, runs.version FROM inbox JOIN runs ON runs.id = inbox.run_id"
        " WHERE inbox.applied = 0 ORDER BY inbox.id LIMIT ?",
        (limit,),
    )
    woken: dict[str, WokenRun] = {}
    for row_id, run_id, payload, version in unapplied:
        run = woken.get(run_id)
        if run is None:
            run = woken[run_id] = WokenRun(RunId(run_id), version, [])
        run.items.append((row_id, payload))
    return list(woken.values())


def take_due_timers(db: apsw.Connection, now: Instant, limit: int) -> int:
    due = list(
        rows(
            db,
            "SELECT rowid, run_id, key, payload FROM timers WHERE due <= ? ORDER BY due LIMIT ?",
            (now, limit),
        )
    )
    if due:
        put_inbox(db, [InboxItem(RunId(run_id), f"timer/{key}", payload) for _, run_id, key, payload in due])
        execute_many(db, "DELETE FROM timers WHERE rowid = ?", ((row[0],) for row in due))
    return len(due)


def next_timer(db: apsw.Connection) -> Instant | None:
    row = first(db, "SELECT min(due) FROM timers")
    return None if row is None else row[0]
