"""Received events, and the steps that wait for them."""

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
from trunkline.stores.rows.received_events import EVENT_COLUMNS, stored_event, wait_values
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import (
    Value,
    execute,
    execute_many,
    first,
    inserted_rows,
    rows,
)

_INSERT = """
    INSERT INTO received_events(id, source, type, key, data, at, run_id) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT(source, id) DO NOTHING
"""
_WAITING = """
    SELECT id, run_id, step, attempt FROM event_waits WHERE type = ?1 AND key = ?2 AND is_signal = 0 AND id > ?3
    UNION ALL
    SELECT id, run_id, step, attempt FROM event_waits WHERE type = ?1 AND key IS NULL AND is_signal = 0 AND id > ?3
    ORDER BY id LIMIT ?4
"""
_WAITING_FOR_SIGNAL = """
    SELECT id, run_id, step, attempt FROM event_waits
    WHERE run_id = ?1 AND type = ?2 AND is_signal = 1 AND id > ?3 ORDER BY id LIMIT ?4
"""
# For the triggers that listen to its type.
_NOTE_EVENT = """
    INSERT INTO trigger_occasions(trigger_id, event_number, at)
    SELECT trigger_id, ?2, ?3 FROM trigger_topics WHERE topic = 'event/' || ?1 ORDER BY trigger_id
"""
_LEAVE_OVER = "UPDATE received_events SET left_over = ? WHERE number = ?"
_LEFT_OVER = f"""
    SELECT left_over, {EVENT_COLUMNS} FROM received_events WHERE left_over IS NOT NULL ORDER BY number LIMIT ?
"""  # noqa: S608 - constants only
_AWAIT = """
    INSERT INTO event_waits(run_id, step, type, attempt, key, is_signal) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT(run_id, step, type) DO UPDATE
        SET attempt = excluded.attempt, key = excluded.key, is_signal = excluded.is_signal
"""
_SINCE_ACCEPTED = "number > max(?1, (SELECT events_seen FROM runs WHERE id = ?2))"
_ARRIVED = f"""
    SELECT {EVENT_COLUMNS} FROM received_events
    WHERE type = ?4 AND run_id IS NULL AND {_SINCE_ACCEPTED} ORDER BY number LIMIT ?3
"""  # noqa: S608 - as above
_ARRIVED_WITH_KEY = f"""
    SELECT {EVENT_COLUMNS} FROM received_events
    WHERE type = ?4 AND key = ?5 AND run_id IS NULL AND {_SINCE_ACCEPTED} ORDER BY number LIMIT ?3
"""  # noqa: S608 - as above
_ARRIVED_SIGNALS = f"""
    SELECT {EVENT_COLUMNS} FROM received_events
    WHERE run_id = ?2 AND type = ?4 AND {_SINCE_ACCEPTED} ORDER BY number LIMIT ?3
"""  # noqa: S608 - as above
_DELETE = """
    DELETE FROM received_events WHERE number IN (
        SELECT number FROM received_events WHERE at < ? AND NOT EXISTS (
            SELECT 1 FROM trigger_occasions WHERE event_number = received_events.number
        ) ORDER BY at LIMIT ?
    )
"""
# Events that are left over at the same time are few: each has hundreds of waiting steps.
_LEFT_OVER_AT_ONCE = 16


class SqliteReceivedEventReads(SqliteReads):
    async def page(self, where: EventFilter, *, limit: int, before: int | None = None) -> list[StoredEvent]:
        conditions = ["run_id IS NULL" if where.run_id is None else "run_id IS NOT NULL"]
        values: list[Value] = []
        for condition, value in (
            ("type = ?", where.type),
            ("key = ?", where.key),
            ("run_id = ?", where.run_id),
            ("number < ?", before),
        ):
            if value is not None:
                conditions.append(condition)
                values.append(value)
        sql = f"SELECT {EVENT_COLUMNS} FROM received_events WHERE {' AND '.join(conditions)}"  # noqa: S608 - as above
        found = rows(self._db, f"{sql} ORDER BY number DESC LIMIT ?", [*values, limit])
        return [stored_event(row) for row in found]

    async def get(self, event_id: str) -> StoredEvent | None:
        sql = f"SELECT {EVENT_COLUMNS} FROM received_events WHERE id = ? ORDER BY number DESC LIMIT 1"  # noqa: S608 - as above
        row = first(self._db, sql, (event_id,))
        return None if row is None else stored_event(row)


class SqliteReceivedEventWrites(SqliteWrites):
    __slots__ = ()

    async def put(self, events: Sequence[NewEvent], limit: int) -> list[EventMatch]:
        # Each at a time of its own, in their order.
        stored = [
            StoredEvent(
                number=0,
                id=event.id,
                source=event.source,
                type=event.type,
                key=event.key,
                data=event.data,
                at=Instant(self._now + place),
                run_id=event.run_id,
            )
            for place, event in enumerate(events)
        ]
        numbers = inserted_rows(
            self._db,
            _INSERT,
            [(each.id, each.source, each.type, each.key, each.data, each.at, each.run_id) for each in stored],
        )
        matches: list[EventMatch] = []
        for number, event in zip(numbers, stored, strict=True):
            if number is not None:
                self._match(event, number, -1, limit, matches)
        execute_many(
            self._db,
            _NOTE_EVENT,
            [
                (event.type, number, self._now)
                for number, event in zip(numbers, stored, strict=True)
                if number is not None and event.run_id is None
            ],
        )
        return matches

    def _match(
        self, event: StoredEvent, number: int, behind: int, limit: int, matches: list[EventMatch]
    ) -> None:
        """Adds the steps that wait for the event, behind this wait; `behind` of -1: nothing is left over yet."""
        room = limit - len(matches)
        # One more, to know whether any are left.
        if event.run_id is None:
            given: Sequence[Value] = (event.type, event.key, behind, room + 1)
            waiting = list(rows(self._db, _WAITING, given))
        else:
            waiting = list(rows(self._db, _WAITING_FOR_SIGNAL, (event.run_id, event.type, behind, room + 1)))
        taken = waiting[:room]
        event = StoredEvent(
            number=number,
            id=event.id,
            source=event.source,
            type=event.type,
            key=event.key,
            data=event.data,
            at=event.at,
            run_id=event.run_id,
        )
        matches += [
            EventMatch(WaitingAttempt(RunId(run_id), step, attempt), event)
            for _, run_id, step, attempt in taken
        ]
        if len(waiting) > room:
            execute(self._db, _LEAVE_OVER, (taken[-1][0] if taken else max(behind, 0), number))
        elif behind >= 0:
            execute(self._db, _LEAVE_OVER, (None, number))

    async def find_more(self, limit: int) -> list[EventMatch]:
        matches: list[EventMatch] = []
        for behind, *row in list(rows(self._db, _LEFT_OVER, (_LEFT_OVER_AT_ONCE,))):
            if len(matches) < limit:
                event = stored_event(row)
                self._match(event, event.number, behind, limit, matches)
        return matches

    async def await_events(self, waits: Sequence[EventWait], limit: int) -> list[list[EventMatch]]:
        new = [values for wait in waits if wait.last is None for values in wait_values(wait)]
        execute_many(self._db, _AWAIT, new)
        return [self._arrived(wait, limit) for wait in waits]

    def _arrived(self, wait: EventWait, limit: int) -> list[EventMatch]:
        place = WaitingAttempt(wait.run_id, wait.step, wait.attempt)
        found: list[StoredEvent] = []
        for type_ in dict.fromkeys(wait.types):
            given: list[Value] = [wait.last or 0, wait.run_id, limit, type_]
            if wait.is_signal:
                sql = _ARRIVED_SIGNALS
            elif wait.key is None:
                sql = _ARRIVED
            else:
                sql = _ARRIVED_WITH_KEY
                given.append(wait.key)
            found += [stored_event(row) for row in rows(self._db, sql, given)]
        found.sort(key=lambda event: event.number)
        return [EventMatch(place, event) for event in found[:limit]]

    async def stop_awaiting(self, places: Sequence[tuple[RunId, str]]) -> None:
        execute_many(self._db, "DELETE FROM event_waits WHERE run_id = ? AND step = ?", places)

    async def delete(self, before: Instant, limit: int) -> int:
        return execute(self._db, _DELETE, (before, limit))
