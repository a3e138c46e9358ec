"""Triggers and their firings."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import asyncpg

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.ids import RunId
from trunkline.stores.port.automation.triggers import Firing, TriggerRecord
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.session import columns
from trunkline.stores.postgres.database.text_encoding import HIGHEST_UUID, as_uuid, restored, restored_row
from trunkline.stores.rows.triggers import (
    changed_trigger_values,
    firing_record,
    firing_values,
    trigger_record,
    trigger_values,
)

_TRIGGERS = """
    SELECT id::text, name, definition, version, created_at, updated_at, scheduled_at, due, awaits_runs FROM triggers
"""
_INSERT = """
    INSERT INTO triggers(id, name, definition, version, created_at, updated_at, scheduled_at, due, awaits_runs)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
_UPDATE = """
    UPDATE triggers SET definition = new.definition, version = new.version, updated_at = new.updated_at,
        scheduled_at = new.scheduled_at, due = new.due, awaits_runs = new.awaits_runs
    FROM unnest($1::uuid[], $2::bytea[], $3::int[], $4::bigint[], $5::bigint[], $6::bigint[], $7::smallint[])
        AS new(id, definition, version, updated_at, scheduled_at, due, awaits_runs)
    WHERE triggers.id = new.id
"""
_FIRINGS = "SELECT id::text, trigger_id::text, at, outcome, scheduled_at, run_id::text, reason FROM firings"
_PUT_FIRINGS = """
    INSERT INTO firings(id, trigger_id, at, outcome, scheduled_at, run_id, reason)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::bigint[], $6::uuid[], $7::text[])
    ON CONFLICT (id) DO UPDATE SET
        at = excluded.at, outcome = excluded.outcome, run_id = excluded.run_id, reason = excluded.reason
"""
# In the words of the index of unfinished runs.
_UNFINISHED_RUNS = """
    SELECT asked.name, run.id::text FROM unnest($1::text[]) AS asked(name) CROSS JOIN LATERAL (
        SELECT id FROM runs WHERE trigger_name = asked.name AND trigger_name IS NOT NULL AND finished_at IS NULL
        ORDER BY id LIMIT $2
    ) AS run ORDER BY run.id
"""
_QUEUED = f"""
    SELECT queued.* FROM unnest($1::uuid[]) AS asked(id) CROSS JOIN LATERAL (
        {_FIRINGS} WHERE trigger_id = asked.id AND outcome = 'queued' ORDER BY firings.id LIMIT $2
    ) AS queued ORDER BY 1
"""  # noqa: S608 - constants of this module
# A run ends while another transaction decides about a firing: whichever is later sees what the other one did, because
# both lock the trigger. In one order everywhere, so that two of these do not wait for each other.
_RUNS_ENDED = """
    WITH waiting AS MATERIALIZED (
        SELECT id FROM triggers WHERE name = ANY($1::text[]) AND awaits_runs = 1 ORDER BY id FOR NO KEY UPDATE
    )
    UPDATE triggers SET due = $2 FROM waiting WHERE triggers.id = waiting.id
"""
_FORGET = """
    DELETE FROM firings WHERE id IN (
        SELECT id FROM firings WHERE at < $1 AND outcome <> 'queued' ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
    )
"""


class PostgresTriggerReads(PostgresReads):
    async def get(self, name: str) -> TriggerRecord | None:
        row = await self._first(f"{_TRIGGERS} WHERE name = $1", name)
        return None if row is None else trigger_record(restored_row(row))

    async def by_id(self, trigger_id: str) -> TriggerRecord | None:
        row = await self._first(f"{_TRIGGERS} WHERE id = $1", as_uuid(trigger_id))
        return None if row is None else trigger_record(restored_row(row))

    async def page(self, *, limit: int, after: str | None = None) -> list[TriggerRecord]:
        page = await self._rows(f"{_TRIGGERS} WHERE name > $1 ORDER BY name LIMIT $2", after or "", limit)
        return [trigger_record(restored_row(row)) for row in page]

    async def firings(self, trigger_id: str, *, limit: int, before: str | None = None) -> list[Firing]:
        if before is not None and as_uuid(before) is None:
            return []
        sql = f"{_FIRINGS} WHERE trigger_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
        page = await self._rows(sql, as_uuid(trigger_id), before or HIGHEST_UUID, limit)
        return [firing_record(restored_row(row)) for row in page]


class PostgresTriggerWrites(PostgresWrites):
    __slots__ = ()

    async def get(self, name: str) -> TriggerRecord | None:
        row = await self._db.first(f"{_TRIGGERS} WHERE name = $1 FOR NO KEY UPDATE", name)
        return None if row is None else trigger_record(restored_row(row))

    async def insert(self, trigger: TriggerRecord) -> None:
        try:
            await self._db.execute(_INSERT, *trigger_values(trigger))
        except asyncpg.UniqueViolationError as exc:
            raise AlreadyExists(f"A trigger named {trigger.name!r} already exists.") from exc

    async def update(self, triggers: Sequence[TriggerRecord]) -> None:
        await self._db.execute(
            _UPDATE, *columns([changed_trigger_values(trigger) for trigger in triggers], 7)
        )

    async def delete(self, name: str) -> bool:
        await self._db.execute(
            "DELETE FROM firings WHERE trigger_id = (SELECT id FROM triggers WHERE name = $1)", name
        )
        return await self._db.execute("DELETE FROM triggers WHERE name = $1", name) > 0

    async def claim_due(self, limit: int) -> list[TriggerRecord]:
        sql = f"{_TRIGGERS} WHERE due <= $1 ORDER BY due LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED"
        return [trigger_record(restored_row(row)) for row in await self._db.rows(sql, self._now, limit)]

    async def next_due(self) -> Instant | None:
        row = await self._db.first("SELECT min(due) FROM triggers")
        return None if row is None else row[0]

    async def unfinished_runs(self, names: Collection[str], *, each: int) -> dict[str, list[RunId]]:
        found: dict[str, list[RunId]] = {}
        for name, run_id in await self._db.rows(_UNFINISHED_RUNS, sorted(names), each):
            found.setdefault(restored(name), []).append(RunId(run_id))
        return found

    async def runs_ended(self, names: Collection[str]) -> bool:
        return await self._db.execute(_RUNS_ENDED, list(names), self._now) > 0

    async def put_firings(self, firings: Sequence[Firing]) -> None:
        await self._db.execute(_PUT_FIRINGS, *columns([firing_values(firing) for firing in firings], 7))

    async def queued_firings(self, trigger_ids: Collection[str], *, each: int) -> dict[str, list[Firing]]:
        found: dict[str, list[Firing]] = {}
        for row in await self._db.rows(_QUEUED, sorted(trigger_ids), each):
            firing = firing_record(restored_row(row))
            found.setdefault(firing.trigger_id, []).append(firing)
        return found

    async def forget_firings(self, before: Instant, limit: int) -> int:
        return await self._db.execute(_FORGET, before, limit)
