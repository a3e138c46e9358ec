"""The outbox, and tasks that are sent again until their results have come."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from trunkline.clock import Instant, after
from trunkline.ids import RunId
from trunkline.messages import Outgoing
from trunkline.stores.base import Dispatch, TaskKey
from trunkline.stores.packing import pack_messages, unpack_messages
from trunkline.stores.postgres.driver import Session, columns
from trunkline.stores.postgres.runs import FINAL
from trunkline.stores.postgres.tasks import drop_results, key_columns, key_of

_MICROSECOND = timedelta(microseconds=1)
# A row has what one transaction had to say, from one message to some hundred.
_ROWS_AT_ONCE = 16

_TAKE_OUTBOX = """
    DELETE FROM outbox WHERE id = ANY(ARRAY(SELECT id FROM outbox ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING id, messages
"""
_PUT_DISPATCHES = """
    INSERT INTO dispatches(task_id, attempt, run_id, payload, pause, resend_at)
    SELECT new.task_id, new.attempt, new.run_id, new.payload, $5, $6
    FROM unnest($1::text[], $2::int[], $3::uuid[], $4::bytea[]) AS new(task_id, attempt, run_id, payload)
    ON CONFLICT (task_id, attempt) DO NOTHING
"""
_TAKE_DUE = f"""
    WITH due AS MATERIALIZED (
        SELECT task_id, attempt,
            EXISTS (SELECT 1 FROM runs WHERE runs.id = dispatches.run_id AND status NOT IN {FINAL}) AS goes_on
        FROM dispatches WHERE resend_at <= $1 ORDER BY resend_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ), forgotten AS (
        DELETE FROM dispatches USING due
        WHERE dispatches.task_id = due.task_id AND dispatches.attempt = due.attempt AND NOT due.goes_on
    )
    UPDATE dispatches SET pause = least(2 * pause, $3), resend_at = $1 + least(2 * pause, $3) FROM due
    WHERE dispatches.task_id = due.task_id AND dispatches.attempt = due.attempt AND due.goes_on
    RETURNING dispatches.task_id, dispatches.attempt, dispatches.run_id::text, dispatches.payload
"""  # noqa: S608 - constants only
_SETTLE = """
    DELETE FROM dispatches USING unnest($1::text[], $2::int[]) AS old(task_id, attempt)
    WHERE dispatches.task_id = old.task_id AND dispatches.attempt = old.attempt
"""
_DISPATCHED = """
    SELECT dispatches.task_id, dispatches.attempt, dispatches.payload
    FROM unnest($1::text[], $2::int[]) AS wanted(task_id, attempt) JOIN dispatches
        ON dispatches.task_id = wanted.task_id AND dispatches.attempt = wanted.attempt
"""


async def put_outbox(db: Session, messages: Sequence[Outgoing]) -> None:
    if messages:
        await db.execute("INSERT INTO outbox(messages) VALUES ($1)", pack_messages(messages))


async def take_outbox(db: Session, limit: int) -> list[Outgoing]:
    taken: list[Outgoing] = []
    while len(taken) < limit:
        most = min(_ROWS_AT_ONCE, limit - len(taken))
        rows = await db.rows(_TAKE_OUTBOX, most)
        for _, packed in sorted(rows, key=lambda row: row[0]):
            taken += unpack_messages(packed)
        if len(rows) < most:
            break
    return taken


async def put_dispatches(
    db: Session, dispatches: Sequence[Dispatch], now: Instant, resend_after: timedelta
) -> None:
    rows = sorted((each.key.task_id, each.key.attempt, each.run_id, each.payload) for each in dispatches)
    if rows:
        pause = resend_after // _MICROSECOND
        await db.execute(_PUT_DISPATCHES, *columns(rows, 4), pause, after(now, resend_after))


async def take_due_dispatches(db: Session, now: Instant, limit: int, longest: timedelta) -> list[Dispatch]:
    due = await db.rows(_TAKE_DUE, now, limit, longest // _MICROSECOND)
    return [Dispatch(key_of(row), RunId(row[2]), row[3]) for row in due]


async def settle_dispatches(db: Session, keys: Collection[TaskKey]) -> None:
    if keys:
        await db.execute(_SETTLE, *key_columns(keys))
        await drop_results(db, keys)


async def dispatched(db: Session, keys: Collection[TaskKey]) -> dict[TaskKey, bytes]:
    if not keys:
        return {}
    return {key_of(row): row[2] for row in await db.rows(_DISPATCHED, *key_columns(keys))}
