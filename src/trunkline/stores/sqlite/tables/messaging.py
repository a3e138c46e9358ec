"""The outbox, and tasks that are sent again until their results have come."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

import apsw

from trunkline.clock import Instant, after
from trunkline.messages import OutgoingMessage
from trunkline.stores.base import Dispatch, TaskKey
from trunkline.stores.rows.messaging import pack_messages, unpack_messages
from trunkline.stores.sqlite.database.statements import execute, execute_many, first, query_many, rows
from trunkline.stores.sqlite.tables.runs import UNFINISHED
from trunkline.stores.sqlite.tables.tasks import drop_results, key_values

_MICROSECOND = timedelta(microseconds=1)

_DUE = f"""
    SELECT task_id, attempt, run_id, payload, pause,
        EXISTS (SELECT 1 FROM runs WHERE runs.id = dispatches.run_id AND runs.status IN ({UNFINISHED}))
    FROM dispatches WHERE resend_at <= ? ORDER BY resend_at LIMIT ?
"""  # noqa: S608 - constants only


def put_outbox(db: apsw.Connection, messages: Sequence[OutgoingMessage]) -> None:
    if messages:
        execute(db, "INSERT INTO outbox(messages) VALUES (?)", (pack_messages(messages),))


def take_outbox(db: apsw.Connection, limit: int) -> list[OutgoingMessage]:
    taken: list[OutgoingMessage] = []
    # Row by row: nobody knows how many messages the next one has, nor how long they are.
    while len(taken) < limit:
        row = first(db, "SELECT id, messages FROM outbox ORDER BY id LIMIT 1")
        if row is None:
            break
        execute(db, "DELETE FROM outbox WHERE id = ?", (row[0],))
        taken += unpack_messages(row[1])
    return taken


def put_dispatches(
    db: apsw.Connection, dispatches: Sequence[Dispatch], now: Instant, resend_after: timedelta
) -> None:
    pause, due = resend_after // _MICROSECOND, after(now, resend_after)
    execute_many(
        db,
        "INSERT INTO dispatches(task_id, attempt, run_id, payload, pause, resend_at)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT(task_id, attempt) DO NOTHING",
        [(each.key.task_id, each.key.attempt, each.run_id, each.payload, pause, due) for each in dispatches],
    )


def take_due_dispatches(db: apsw.Connection, now: Instant, limit: int, longest: timedelta) -> list[Dispatch]:
    most = longest // _MICROSECOND
    due: list[Dispatch] = []
    later: list[tuple[int, int, str, int]] = []
    forgotten: list[tuple[str, int]] = []
    for task_id, attempt, run_id, payload, pause, goes_on in list(rows(db, _DUE, (now, limit))):
        if goes_on:
            due.append(Dispatch(TaskKey(task_id, attempt), run_id, payload))
            longer = min(2 * pause, most)
            later.append((longer, now + longer, task_id, attempt))
        else:
            forgotten.append((task_id, attempt))
    execute_many(
        db, "UPDATE dispatches SET pause = ?, resend_at = ? WHERE task_id = ? AND attempt = ?", later
    )
    execute_many(db, "DELETE FROM dispatches WHERE task_id = ? AND attempt = ?", forgotten)
    return due


def settle_dispatches(db: apsw.Connection, keys: Collection[TaskKey]) -> None:
    execute_many(db, "DELETE FROM dispatches WHERE task_id = ? AND attempt = ?", key_values(keys))
    drop_results(db, keys)


def dispatched(db: apsw.Connection, keys: Collection[TaskKey]) -> dict[TaskKey, bytes]:
    found = query_many(
        db,
        "SELECT task_id, attempt, payload FROM dispatches WHERE task_id = ? AND attempt = ?",
        key_values(keys),
    )
    return {TaskKey(task_id, attempt): payload for task_id, attempt, payload in found}
