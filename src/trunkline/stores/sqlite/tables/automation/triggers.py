"""Triggers and their firings."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import apsw

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.ids import RunId
from trunkline.stores.port.automation.triggers import Firing, PendingFiring, RunEnd, TriggerRecord
from trunkline.stores.rows.triggers import (
    changed_trigger_values,
    firing_record,
    firing_values,
    pending_firing,
    trigger_record,
    trigger_values,
)
from trunkline.stores.sqlite.cache import CacheChanges
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import (
    changes_of_many,
    execute,
    execute_many,
    first,
    is_duplicate,
    rows,
)

_COLUMNS = "id, name, definition, version, created_at, updated_at, scheduled_at, due, awaits_runs"
_TRIGGERS = f"SELECT {_COLUMNS} FROM triggers"  # noqa: S608 - constants of this module
_INSERT = f"INSERT INTO triggers({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
_UPDATE = """
    UPDATE triggers SET definition = ?2, version = ?3, updated_at = ?4, scheduled_at = ?5, due = ?6, awaits_runs = ?7
    WHERE id = ?1
"""
_FIRING_COLUMNS = "id, trigger_id, at, outcome, scheduled_at, run_id, reason"
_FIRINGS = f"SELECT {_FIRING_COLUMNS} FROM firings"  # noqa: S608 - as above
_PUT_FIRING = f"INSERT OR REPLACE INTO firings({_FIRING_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
_UNFINISHED_RUNS = """
    SELECT id FROM runs WHERE trigger_name = ? AND trigger_name IS NOT NULL AND finished_at IS NULL ORDER BY id LIMIT ?
"""
_FORGET = """
    DELETE FROM firings WHERE id IN (SELECT id FROM firings WHERE at < ? AND outcome <> 'queued' ORDER BY at LIMIT ?)
"""


_NOTE_RUN_END = """
    INSERT INTO trigger_occasions(trigger_id, run_id, at)
    SELECT trigger_id, ?2, ?3 FROM trigger_topics WHERE topic = ?1 ORDER BY trigger_id
"""
_RUN_TOPICS = "SELECT DISTINCT topic FROM trigger_topics WHERE topic >= 'run/' AND topic < 'run0'"
_PENDING = """
    SELECT pending.number, trigger.id, trigger.name, trigger.definition, trigger.version, trigger.created_at,
        trigger.updated_at, trigger.scheduled_at, trigger.due, trigger.awaits_runs,
        event.number, event.id, event.source, event.type, event.key, event.data, event.at, event.run_id,
        run.id, run.workflow_name, run.workflow_version, run.status, run.output, run.error, run.correlation_id,
        run.depth
    FROM trigger_occasions AS pending
        JOIN triggers AS trigger ON trigger.id = pending.trigger_id
        LEFT JOIN received_events AS event ON event.number = pending.event_number
        LEFT JOIN runs AS run ON run.id = pending.run_id
    ORDER BY pending.number LIMIT ?
"""


class SqliteTriggerReads(SqliteReads):
    async def get(self, name: str) -> TriggerRecord | None:
        return _get(self._db, name)

    async def by_id(self, trigger_id: str) -> TriggerRecord | None:
        row = first(self._db, f"{_TRIGGERS} WHERE id = ?", (trigger_id,))
        return None if row is None else trigger_record(row)

    async def page(self, *, limit: int, after: str | None = None) -> list[TriggerRecord]:
        page = rows(self._db, f"{_TRIGGERS} WHERE name > ? ORDER BY name LIMIT ?", (after or "", limit))
        return [trigger_record(row) for row in page]

    async def last_firings(self, trigger_ids: Collection[str]) -> dict[str, Firing]:
        sql = f"{_FIRINGS} WHERE trigger_id = ? ORDER BY id DESC LIMIT 1"
        found = [first(self._db, sql, (trigger_id,)) for trigger_id in trigger_ids]
        firings = [firing_record(row) for row in found if row is not None]
        return {firing.trigger_id: firing for firing in firings}

    async def firings(self, trigger_id: str, *, limit: int, before: str | None = None) -> list[Firing]:
        sql = f"{_FIRINGS} WHERE trigger_id = ?1 AND (?2 IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3"
        return [firing_record(row) for row in rows(self._db, sql, (trigger_id, before, limit))]


class SqliteTriggerWrites(SqliteWrites):
    __slots__ = ("_changes",)

    def __init__(self, db: apsw.Connection, now: Instant, changes: CacheChanges) -> None:
        super().__init__(db, now)
        self._changes = changes

    async def get(self, name: str) -> TriggerRecord | None:
        return _get(self._db, name)

    async def insert(self, trigger: TriggerRecord) -> None:
        try:
            execute(self._db, _INSERT, trigger_values(trigger))
        except apsw.ConstraintError as exc:
            if not is_duplicate(exc):
                raise
            raise AlreadyExists(f"A trigger named {trigger.name!r} already exists.") from exc

    async def update(self, triggers: Sequence[TriggerRecord]) -> None:
        execute_many(self._db, _UPDATE, [changed_trigger_values(trigger) for trigger in triggers])

    async def delete(self, name: str) -> bool:
        self._changes.run_topics = None
        for table in ("firings", "trigger_topics", "trigger_occasions"):
            sql = f"DELETE FROM {table} WHERE trigger_id = (SELECT id FROM triggers WHERE name = ?)"  # noqa: S608 - as above
            execute(self._db, sql, (name,))
        return execute(self._db, "DELETE FROM triggers WHERE name = ?", (name,)) > 0

    async def set_topics(self, trigger_id: str, topics: Collection[str]) -> None:
        self._changes.run_topics = None
        execute(self._db, "DELETE FROM trigger_topics WHERE trigger_id = ?", (trigger_id,))
        sql = "INSERT INTO trigger_topics(topic, trigger_id) VALUES (?, ?)"
        execute_many(self._db, sql, [(topic, trigger_id) for topic in set(topics)])

    async def listeners(self, topics: Collection[str]) -> int:
        sql = "SELECT count(*) FROM trigger_topics WHERE topic = ?"
        return max((row[0] for topic in topics for row in rows(self._db, sql, (topic,))), default=0)

    async def note_run_ends(self, ends: Sequence[RunEnd]) -> bool:
        if self._changes.run_topics is None:
            self._changes.run_topics = frozenset(topic for (topic,) in rows(self._db, _RUN_TOPICS))
        if not self._changes.run_topics:
            return False
        values = [(end.topic, end.run_id, self._now) for end in ends if end.topic in self._changes.run_topics]
        execute_many(self._db, _NOTE_RUN_END, values)
        return bool(values)

    async def has_pending(self) -> bool:
        return first(self._db, "SELECT 1 FROM trigger_occasions LIMIT 1") is not None

    async def take_pending(self, limit: int) -> list[PendingFiring]:
        found = list(rows(self._db, _PENDING, (limit,)))
        execute_many(
            self._db, "DELETE FROM trigger_occasions WHERE number = ?", [(number,) for number, *_ in found]
        )
        taken = [pending_firing(row) for _, *row in found]
        return [pending for pending in taken if pending is not None]

    async def claim_due(self, limit: int) -> list[TriggerRecord]:
        # The writer's transaction is the claim: nothing else can write meanwhile.
        due = rows(self._db, f"{_TRIGGERS} WHERE due <= ? ORDER BY due LIMIT ?", (self._now, limit))
        return [trigger_record(row) for row in due]

    async def next_due(self) -> Instant | None:
        row = first(self._db, "SELECT min(due) FROM triggers")
        return None if row is None else row[0]

    async def unfinished_runs(self, names: Collection[str], *, each: int) -> dict[str, list[RunId]]:
        found = {name: list(rows(self._db, _UNFINISHED_RUNS, (name, each))) for name in names}
        return {name: [RunId(run_id) for (run_id,) in runs] for name, runs in found.items() if runs}

    async def runs_ended(self, names: Collection[str]) -> bool:
        sql = "UPDATE triggers SET due = ? WHERE name = ? AND awaits_runs = 1"
        return any(changes_of_many(self._db, sql, [(self._now, name) for name in names]))

    async def put_firings(self, firings: Sequence[Firing]) -> None:
        execute_many(self._db, _PUT_FIRING, [firing_values(firing) for firing in firings])

    async def queued_firings(self, trigger_ids: Collection[str], *, each: int) -> dict[str, list[Firing]]:
        sql = f"{_FIRINGS} WHERE trigger_id = ? AND outcome = 'queued' ORDER BY id LIMIT ?"
        found = {trigger_id: list(rows(self._db, sql, (trigger_id, each))) for trigger_id in trigger_ids}
        return {
            trigger_id: [firing_record(row) for row in page] for trigger_id, page in found.items() if page
        }

    async def forget_firings(self, before: Instant, limit: int) -> int:
        return execute(self._db, _FORGET, (before, limit))


def _get(db: apsw.Connection, name: str) -> TriggerRecord | None:
    row = first(db, f"{_TRIGGERS} WHERE name = ?", (name,))
    return None if row is None else trigger_record(row)
