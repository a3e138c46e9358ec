"""
Received events, and the steps that wait for them.

An event and a wait that are written at the same time do not see each other. So a transaction that writes one of them
holds a lock for its type until the commit: events exclude waits and other events, waits exclude events only.
"""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.port.automation.received_events import (
    EventFilter,
    EventMatch,
    EventWait,
    NewEvent,
    StoredEvent,
    WaitingAttempt,
)
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.session import Value, columns
from trunkline.stores.postgres.database.text_encoding import as_uuid, restored_row
from trunkline.stores.rows import Row
from trunkline.stores.rows.received_events import event_match, stored_event, wait_values

_COLUMNS = "number, id, source, type, key, data, at, run_id::text"
# In one order everywhere: two transactions with the same types do not wait for one another.
_LOCK = """
    SELECT {lock}(keys.hash) FROM (
        SELECT DISTINCT hashtextextended('trunkline event ' || given.type, 0) AS hash
        FROM unnest($1::text[]) AS given(type) ORDER BY hash
    ) AS keys
"""
_LOCK_AS_EVENT = _LOCK.format(lock="pg_advisory_xact_lock")
_LOCK_AS_WAIT = _LOCK.format(lock="pg_advisory_xact_lock_shared")
# Numbered in the order given; inserted in the order of the keys, so that two processes that bring the same events do
# not wait for one another.
_INSERT = """
    INSERT INTO received_events(number, id, source, type, key, data, at, run_id)
    SELECT * FROM (
        SELECT nextval(pg_get_serial_sequence('received_events', 'number')) AS number, given.id, given.source,
            given.type, given.key, given.data, given.at, given.run_id
        FROM (
            SELECT new.* FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::bigint[],
                $7::uuid[]) WITH ORDINALITY AS new(id, source, type, key, data, at, run_id, place)
            ORDER BY new.place
        ) AS given
    ) AS numbered
    ORDER BY numbered.source, numbered.id
    ON CONFLICT (source, id) DO NOTHING
    RETURNING number, id, source, type, key, data, at, run_id::text
"""
_WAITING = """
    SELECT events.number, waiting.id, waiting.run_id::text, waiting.step, waiting.attempt
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::uuid[], $5::bigint[])
        AS events(number, type, key, run_id, behind)
        CROSS JOIN LATERAL (
            (SELECT id, run_id, step, attempt FROM event_waits
                WHERE events.run_id IS NULL AND is_signal = 0 AND event_waits.type = events.type
                    AND event_waits.key = events.key AND id > events.behind ORDER BY id LIMIT $6)
            UNION ALL
            (SELECT id, run_id, step, attempt FROM event_waits
                WHERE events.run_id IS NULL AND is_signal = 0 AND event_waits.type = events.type
                    AND event_waits.key IS NULL AND id > events.behind ORDER BY id LIMIT $6)
            UNION ALL
            (SELECT id, run_id, step, attempt FROM event_waits
                WHERE is_signal = 1 AND event_waits.run_id = events.run_id AND event_waits.type = events.type
                    AND id > events.behind ORDER BY id LIMIT $6)
        ) AS waiting
    ORDER BY events.number, waiting.id LIMIT $6
"""
# For the triggers that listen to their types.
_NOTE_EVENTS = """
    INSERT INTO trigger_occasions(trigger_id, event_number, at)
    SELECT topic.trigger_id, event.number, $3
    FROM unnest($1::bigint[], $2::text[]) AS event(number, topic)
        JOIN trigger_topics AS topic ON topic.topic = event.topic
    ORDER BY event.number, topic.trigger_id
"""
_LEAVE_OVER = """
    UPDATE received_events SET left_over = new.left_over
    FROM unnest($1::bigint[], $2::bigint[]) AS new(number, left_over)
    WHERE received_events.number = new.number
"""
_LEFT_OVER = f"""
    SELECT left_over, {_COLUMNS} FROM received_events
    WHERE left_over IS NOT NULL ORDER BY number LIMIT $1 FOR UPDATE SKIP LOCKED
"""  # noqa: S608 - constants only
_AWAIT = """
    INSERT INTO event_waits(run_id, step, type, attempt, key, is_signal)
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int[], $5::text[], $6::smallint[])
    ON CONFLICT (run_id, step, type) DO UPDATE
        SET attempt = excluded.attempt, key = excluded.key, is_signal = excluded.is_signal
"""
_ARRIVED = f"""
    SELECT wait.place, {", ".join(f"arrived.{each}" for each in _COLUMNS.split(", "))}
    FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::smallint[], $6::bigint[])
        AS wait(place, run_id, type, key, is_signal, last)
        JOIN runs ON runs.id = wait.run_id
        CROSS JOIN LATERAL (
            (SELECT * FROM received_events
                WHERE wait.is_signal = 0 AND wait.key IS NOT NULL AND received_events.run_id IS NULL
                    AND received_events.type = wait.type AND received_events.key = wait.key
                    AND number > greatest(wait.last, runs.events_seen) ORDER BY number LIMIT $7)
            UNION ALL
            (SELECT * FROM received_events
                WHERE wait.is_signal = 0 AND wait.key IS NULL AND received_events.run_id IS NULL
                    AND received_events.type = wait.type
                    AND number > greatest(wait.last, runs.events_seen) ORDER BY number LIMIT $7)
            UNION ALL
            (SELECT * FROM received_events
                WHERE wait.is_signal = 1 AND received_events.run_id = wait.run_id
                    AND received_events.type = wait.type
                    AND number > greatest(wait.last, runs.events_seen) ORDER BY number LIMIT $7)
        ) AS arrived
    ORDER BY wait.place, arrived.number
"""  # noqa: S608 - as above
_STOP = """
    DELETE FROM event_waits USING unnest($1::uuid[], $2::text[]) AS old(run_id, step)
    WHERE event_waits.run_id = old.run_id AND event_waits.step = old.step
"""
_DELETE = """
    DELETE FROM received_events WHERE number = ANY(ARRAY(
        SELECT number FROM received_events WHERE at < $1
            AND NOT EXISTS (SELECT 1 FROM trigger_occasions WHERE event_number = received_events.number)
        ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))
"""
# Events that are left over at the same time are few: each has hundreds of waiting steps.
_LEFT_OVER_AT_ONCE = 16
_LAST = 2**63 - 1


class PostgresReceivedEventReads(PostgresReads):
    async def page(self, where: EventFilter, *, limit: int, before: int | None = None) -> list[StoredEvent]:
        if where.run_id is not None and as_uuid(where.run_id) is None:
            return []
        conditions = ["number < $1", "run_id IS NULL" if where.run_id is None else "run_id IS NOT NULL"]
        values: list[Value] = [_LAST if before is None else before, limit]
        for column, value in (("type", where.type), ("key", where.key), ("run_id", where.run_id)):
            if value is not None:
                values.append(value)
                conditions.append(f"{column} = ${len(values)}")
        sql = f"SELECT {_COLUMNS} FROM received_events WHERE {' AND '.join(conditions)} ORDER BY number DESC LIMIT $2"  # noqa: S608 - as above
        return [stored_event(restored_row(row)) for row in await self._rows(sql, *values)]

    async def get(self, event_id: str) -> StoredEvent | None:
        sql = f"SELECT {_COLUMNS} FROM received_events WHERE id = $1 ORDER BY number DESC LIMIT 1"  # noqa: S608 - as above
        row = await self._first(sql, event_id)
        return None if row is None else stored_event(restored_row(row))


class PostgresReceivedEventWrites(PostgresWrites):
    __slots__ = ()

    async def put(self, events: Sequence[NewEvent], limit: int) -> list[EventMatch]:
        if not events:
            return []
        # A statement of its own, so that the next ones see what the others have committed.
        await self._db.execute(_LOCK_AS_EVENT, [event.type for event in events])
        values = [
            # Each at a time of its own, in their order.
            (each.id, each.source, each.type, each.key, each.data, self._now + place, each.run_id)
            for place, each in enumerate(events)
        ]
        written = await self._db.rows(_INSERT, *columns(values, 7))
        stored = sorted((stored_event(restored_row(row)) for row in written), key=lambda event: event.number)
        heard = [(event.number, f"event/{event.type}") for event in stored if event.run_id is None]
        if heard:
            await self._db.execute(_NOTE_EVENTS, *columns(heard, 2), self._now)
        return await self._match([(event, 0) for event in stored], limit, are_left_over=False)

    async def _match(
        self, events: Sequence[tuple[StoredEvent, int]], limit: int, *, are_left_over: bool
    ) -> list[EventMatch]:
        """The steps that wait for the events, each behind a wait; notes which events are left over."""
        if not events:
            return []
        asked = [(event.number, event.type, event.key, event.run_id, behind) for event, behind in events]
        # One more, to know whether any are left.
        waiting = await self._db.rows(_WAITING, *columns(asked, 5), limit + 1)
        taken = waiting[:limit]
        by_number = {event.number: event for event, _ in events}
        last = {number: wait for number, wait, *_ in taken}
        first_left = waiting[limit][0] if len(waiting) > limit else _LAST
        left: list[tuple[int, int | None]] = []
        for event, behind in events:
            if event.number >= first_left:
                left.append((event.number, last.get(event.number, behind)))
            elif are_left_over:
                left.append((event.number, None))
        if left:
            await self._db.execute(_LEAVE_OVER, *columns(left, 2))
        return [_match_of(restored_row(row), by_number) for row in taken]

    async def find_more(self, limit: int) -> list[EventMatch]:
        found = await self._db.rows(_LEFT_OVER, _LEFT_OVER_AT_ONCE)
        events = [(stored_event(restored_row(list(row)[1:])), row[0]) for row in found]
        return await self._match(events, limit, are_left_over=True)

    async def await_events(self, waits: Sequence[EventWait], limit: int) -> list[list[EventMatch]]:
        await self._db.execute(_LOCK_AS_WAIT, sorted({type_ for wait in waits for type_ in wait.types}))
        new = {values[:3]: values for wait in waits if wait.last is None for values in wait_values(wait)}
        if new:
            await self._db.execute(_AWAIT, *columns([new[key] for key in sorted(new)], 6))
        asked = [
            (place, wait.run_id, type_, wait.key, int(wait.is_signal), wait.last or 0)
            for place, wait in enumerate(waits)
            for type_ in dict.fromkeys(wait.types)
        ]
        matches: list[list[EventMatch]] = [[] for _ in waits]
        for row in await self._db.rows(_ARRIVED, *columns(asked, 6), limit):
            place = int(row[0])
            wait = waits[place]
            event = restored_row(row)[1:]
            matches[place].append(event_match([wait.run_id, wait.step, wait.attempt, *event]))
        return [found[:limit] for found in matches]

    async def stop_awaiting(self, places: Sequence[tuple[RunId, str]]) -> None:
        await self._db.execute(_STOP, *columns(sorted(places), 2))

    async def delete(self, before: Instant, limit: int) -> int:
        return await self._db.execute(_DELETE, before, limit)


def _match_of(row: Row, events: dict[int, StoredEvent]) -> EventMatch:
    number, _, run_id, step, attempt = row
    return EventMatch(WaitingAttempt(RunId(run_id), step, attempt), events[number])
