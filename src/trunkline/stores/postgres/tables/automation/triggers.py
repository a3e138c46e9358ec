"""Triggers and their firings."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import asyncpg

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.ids import RunId
from trunkline.stores.port.automation.triggers import Firing, PendingFiring, RunEnd, TriggerRecord
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.session import columns
from trunkline.stores.postgres.database.text_encoding import HIGHEST_UUID, as_uuid, restored, restored_row
from trunkline.stores.rows.triggers import (
    changed_trigger_values,
    firing_record,
    firing_values,
    pending_firing,
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
_LAST_FIRINGS = f"""
    SELECT newest.* FROM unnest($1::uuid[]) AS asked(id) CROSS JOIN LATERAL (
        {_FIRINGS} WHERE trigger_id = asked.id ORDER BY firings.id DESC LIMIT 1
    ) AS newest
"""  # noqa: S608 - as above
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


# In one order everywhere, so that two transactions do not wait for each other.
_NOTE_RUN_ENDS = """
    INSERT INTO trigger_occasions(trigger_id, run_id, at)
    SELECT topic.trigger_id, ended.run_id, $3
    FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS ended(run_id, topic, place)
        JOIN trigger_topics AS topic ON topic.topic = ended.topic
    ORDER BY ended.place, topic.trigger_id
"""
_LISTENERS = """
    SELECT count(*) FROM trigger_topics WHERE topic = ANY($1::text[]) GROUP BY topic ORDER BY 1 DESC LIMIT 1
"""
_TAKE_PENDING = """
    WITH oldest AS MATERIALIZED (
        SELECT number FROM trigger_occasions ORDER BY number LIMIT $1 FOR UPDATE SKIP LOCKED
    ), taken AS (
        DELETE FROM trigger_occasions USING oldest WHERE trigger_occasions.number = oldest.number
        RETURNING trigger_occasions.*
    )
    SELECT trigger.id::text, trigger.name, trigger.definition, trigger.version, trigger.created_at,
        trigger.updated_at, trigger.scheduled_at, trigger.due, trigger.awaits_runs,
        event.number, event.id, event.source, event.type, event.key, event.data, event.at, event.run_id::text,
        run.id::text, run.workflow_name, run.workflow_version, run.status, run.output, run.error, run.correlation_id,
        run.depth
    FROM taken
        JOIN triggers AS trigger ON trigger.id = taken.trigger_id
        LEFT JOIN received_events AS event ON event.number = taken.event_number
        LEFT JOIN runs AS run ON run.id = taken.run_id
    ORDER BY taken.number
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

    async def last_firings(self, trigger_ids: Collection[str]) -> dict[str, Firing]:
        found = [
            firing_record(restored_row(row)) for row in await self._rows(_LAST_FIRINGS, list(trigger_ids))
        ]
        return {firing.trigger_id: firing for firing in found}

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
        for table in ("firings", "trigger_topics", "trigger_occasions"):
            sql = f"DELETE FROM {table} WHERE trigger_id = (SELECT id FROM triggers WHERE name = $1)"  # noqa: S608 - constants only
            await self._db.execute(sql, name)
        return await self._db.execute("DELETE FROM triggers WHERE name = $1", name) > 0

    async def set_topics(self, trigger_id: str, topics: Collection[str]) -> None:
        await self._db.execute("DELETE FROM trigger_topics WHERE trigger_id = $1", trigger_id)
        if topics:
            sql = "INSERT INTO trigger_topics(topic, trigger_id) SELECT topic, $2 FROM unnest($1::text[]) AS new(topic)"
            await self._db.execute(sql, sorted(set(topics)), trigger_id)

    async def listeners(self, topics: Collection[str]) -> int:
        row = await self._db.first(_LISTENERS, list(topics))
        return 0 if row is None else row[0]

    async def note_run_ends(self, ends: Sequence[RunEnd]) -> bool:
        return await self._db.execute(_NOTE_RUN_ENDS, *columns(ends, 2), self._now) > 0

    async def has_pending(self) -> bool:
        return await self._db.first("SELECT 1 FROM trigger_occasions LIMIT 1") is not None

    async def take_pending(self, limit: int) -> list[PendingFiring]:
        found = [pending_firing(restored_row(row)) for row in await self._db.rows(_TAKE_PENDING, limit)]
        return [pending for pending in found if pending is not None]

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
