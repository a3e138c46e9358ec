"""Triggers and their firings."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import apsw

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.ids import RunId
from trunkline.stores.port.automation.triggers import Firing, TriggerRecord
from trunkline.stores.rows.triggers import (
    changed_trigger_values,
    firing_record,
    firing_values,
    trigger_record,
    trigger_values,
)
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


class SqliteTriggerReads(SqliteReads):
    async def get(self, name: str) -> TriggerRecord | None:
        return _get(self._db, name)

    async def by_id(self, trigger_id: str) -> TriggerRecord | None:
        row = first(self._db, f"{_TRIGGERS} WHERE id = ?", (trigger_id,))
        return None if row is None else trigger_record(row)

    async def page(self, *, limit: int, after: str | None = None) -> list[TriggerRecord]:
        page = rows(self._db, f"{_TRIGGERS} WHERE name > ? ORDER BY name LIMIT ?", (after or "", limit))
        return [trigger_record(row) for row in page]

    async def firings(self, trigger_id: str, *, limit: int, before: str | None = None) -> list[Firing]:
        sql = f"{_FIRINGS} WHERE trigger_id = ?1 AND (?2 IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3"
        return [firing_record(row) for row in rows(self._db, sql, (trigger_id, before, limit))]


class SqliteTriggerWrites(SqliteWrites):
    __slots__ = ()

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
        execute(
            self._db,
            "DELETE FROM firings WHERE trigger_id = (SELECT id FROM triggers WHERE name = ?)",
            (name,),
        )
        return execute(self._db, "DELETE FROM triggers WHERE name = ?", (name,)) > 0

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
