"""Subscriptions and their deliveries."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import asyncpg

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.ids import RunId
from trunkline.stores.port.automation.subscriptions import Attempt, Delivery, SubscriptionRecord
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.session import columns
from trunkline.stores.postgres.database.text_encoding import HIGHEST_UUID, as_uuid, restored_row
from trunkline.stores.rows.subscriptions import (
    attempt_values,
    changed_subscription_values,
    delivery_record,
    delivery_values,
    subscription_record,
    subscription_values,
)

_SUBSCRIPTIONS = """
    SELECT id::text, name, definition, version, created_at, updated_at, failing_since, error, disabled_at
    FROM subscriptions
"""
_INSERT = """
    INSERT INTO subscriptions(
        id, name, definition, version, created_at, updated_at, failing_since, error, disabled_at
    )
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
_UPDATE = """
    UPDATE subscriptions SET definition = $2, version = $3, updated_at = $4, failing_since = $5, error = $6,
        disabled_at = $7
    WHERE id = $1
"""
_NOTE_SUCCESS = """
    UPDATE subscriptions SET failing_since = NULL, error = NULL WHERE id = $1 AND failing_since IS NOT NULL
"""
_NOTE_FAILURE = """
    UPDATE subscriptions SET failing_since = coalesce(failing_since, $2), error = $3,
        disabled_at = CASE WHEN disabled_at IS NULL AND failing_since <= $4 THEN $2 ELSE disabled_at END
    WHERE id = $1 RETURNING disabled_at
"""
_DELIVERIES = """
    SELECT id::text, subscription_id::text, event_id, type, run_id::text, event, created_at, status, attempts,
        attempted_at, error
    FROM deliveries
"""
_PUT_DELIVERIES = """
    INSERT INTO deliveries(
        id, subscription_id, event_id, type, run_id, event, created_at, status, attempts, attempted_at, error
    )
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::uuid[], $6::bytea[], $7::bigint[],
        $8::text[], $9::int[], $10::bigint[], $11::text[])
"""
_NOTE_ATTEMPTS = """
    UPDATE deliveries SET status = new.status, error = new.error, attempts = deliveries.attempts + new.attempts,
        attempted_at = $5
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int[]) AS new(id, status, error, attempts)
    WHERE deliveries.id = new.id
"""
_RENEW = """
    UPDATE deliveries SET status = 'pending', attempts = 0, error = NULL WHERE id = $1 AND status <> 'pending'
"""
_FORGET = """
    DELETE FROM deliveries WHERE id IN (
        SELECT id FROM deliveries WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
    )
"""
# A block has the labels of the run that it is a part of. Blocks nest.
_LABELS = """
    WITH RECURSIVE outer_runs(run_id, id, parent_id, block) AS (
        SELECT id, id, parent_id, block FROM runs WHERE id = ANY($1::uuid[])
        UNION ALL
        SELECT outer_runs.run_id, runs.id, runs.parent_id, runs.block
        FROM outer_runs JOIN runs ON runs.id = outer_runs.parent_id WHERE outer_runs.block IS NOT NULL
    )
    SELECT outer_runs.run_id::text, label.key, label.value
    FROM outer_runs JOIN run_labels AS label ON label.run_id = outer_runs.id WHERE outer_runs.block IS NULL
"""


class PostgresSubscriptionReads(PostgresReads):
    async def get(self, name: str) -> SubscriptionRecord | None:
        row = await self._first(f"{_SUBSCRIPTIONS} WHERE name = $1", name)
        return None if row is None else subscription_record(restored_row(row))

    async def by_id(self, subscription_id: str) -> SubscriptionRecord | None:
        row = await self._first(f"{_SUBSCRIPTIONS} WHERE id = $1", as_uuid(subscription_id))
        return None if row is None else subscription_record(restored_row(row))

    async def page(self, *, limit: int, after: str | None = None) -> list[SubscriptionRecord]:
        sql = f"{_SUBSCRIPTIONS} WHERE name > $1 ORDER BY name LIMIT $2"
        return [subscription_record(restored_row(row)) for row in await self._rows(sql, after or "", limit)]

    async def delivery(self, delivery_id: str) -> Delivery | None:
        row = await self._first(f"{_DELIVERIES} WHERE id = $1", as_uuid(delivery_id))
        return None if row is None else delivery_record(restored_row(row))

    async def deliveries(
        self, subscription_id: str, *, limit: int, before: str | None = None
    ) -> list[Delivery]:
        if before is not None and as_uuid(before) is None:
            return []
        sql = f"{_DELIVERIES} WHERE subscription_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
        page = await self._rows(sql, as_uuid(subscription_id), before or HIGHEST_UUID, limit)
        return [delivery_record(restored_row(row)) for row in page]


class PostgresSubscriptionWrites(PostgresWrites):
    __slots__ = ()

    async def all(self) -> list[SubscriptionRecord]:
        found = await self._db.rows(f"{_SUBSCRIPTIONS} ORDER BY name")
        return [subscription_record(restored_row(row)) for row in found]

    async def get(self, name: str) -> SubscriptionRecord | None:
        row = await self._db.first(f"{_SUBSCRIPTIONS} WHERE name = $1 FOR NO KEY UPDATE", name)
        return None if row is None else subscription_record(restored_row(row))

    async def insert(self, subscription: SubscriptionRecord) -> None:
        try:
            await self._db.execute(_INSERT, *subscription_values(subscription))
        except asyncpg.UniqueViolationError as exc:
            raise AlreadyExists(f"A subscription named {subscription.name!r} already exists.") from exc

    async def update(self, subscription: SubscriptionRecord) -> None:
        await self._db.execute(_UPDATE, *changed_subscription_values(subscription))

    async def delete(self, name: str) -> bool:
        await self._db.execute(
            "DELETE FROM deliveries WHERE subscription_id = (SELECT id FROM subscriptions WHERE name = $1)",
            name,
        )
        return await self._db.execute("DELETE FROM subscriptions WHERE name = $1", name) > 0

    async def note_success(self, subscription_id: str) -> None:
        await self._db.execute(_NOTE_SUCCESS, subscription_id)

    async def note_failure(self, subscription_id: str, error: str, *, disable_before: Instant) -> bool:
        row = await self._db.first(_NOTE_FAILURE, subscription_id, self._now, error, disable_before)
        return row is not None and row[0] is not None

    async def labels_of(self, run_ids: Collection[RunId]) -> dict[RunId, dict[str, str]]:
        found: dict[RunId, dict[str, str]] = {}
        for row in await self._db.rows(_LABELS, list(run_ids)):
            run_id, key, value = restored_row(row)
            found.setdefault(RunId(run_id), {})[key] = value
        return found

    async def put_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        if deliveries:
            await self._db.execute(_PUT_DELIVERIES, *columns(map(delivery_values, deliveries), 11))

    async def note_attempts(self, attempts: Sequence[Attempt]) -> None:
        if attempts:
            await self._db.execute(_NOTE_ATTEMPTS, *columns(map(attempt_values, attempts), 4), self._now)

    async def renew_delivery(self, delivery_id: str) -> bool:
        return await self._db.execute(_RENEW, as_uuid(delivery_id)) > 0

    async def forget_deliveries(self, before: Instant, limit: int) -> int:
        return await self._db.execute(_FORGET, before, limit)
