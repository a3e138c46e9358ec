"""Subscriptions and their deliveries."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import apsw

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.ids import RunId
from trunkline.stores.port.automation.subscriptions import Attempt, Delivery, SubscriptionRecord
from trunkline.stores.rows.subscriptions import (
    attempt_values,
    changed_subscription_values,
    delivery_record,
    delivery_values,
    subscription_record,
    subscription_values,
)
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import (
    execute,
    execute_many,
    first,
    is_duplicate,
    query_many,
    rows,
)

_COLUMNS = "id, name, definition, version, created_at, updated_at, failing_since, error, disabled_at"
_SUBSCRIPTIONS = f"SELECT {_COLUMNS} FROM subscriptions"  # noqa: S608 - constants of this module
_INSERT = f"INSERT INTO subscriptions({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
_UPDATE = """
    UPDATE subscriptions SET definition = ?2, version = ?3, updated_at = ?4, failing_since = ?5, error = ?6,
        disabled_at = ?7
    WHERE id = ?1
"""
_NOTE_SUCCESS = """
    UPDATE subscriptions SET failing_since = NULL, error = NULL WHERE id = ? AND failing_since IS NOT NULL
"""
_NOTE_FAILURE = """
    UPDATE subscriptions SET failing_since = coalesce(failing_since, ?2), error = ?3,
        disabled_at = CASE WHEN disabled_at IS NULL AND failing_since <= ?4 THEN ?2 ELSE disabled_at END
    WHERE id = ?1
"""
_DELIVERY_COLUMNS = (
    "id, subscription_id, event_id, type, run_id, event, created_at, status, attempts, attempted_at, error"
)
_DELIVERIES = f"SELECT {_DELIVERY_COLUMNS} FROM deliveries"  # noqa: S608 - as above
_PUT_DELIVERY = f"""
    INSERT INTO deliveries({_DELIVERY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""  # noqa: S608 - as above
_NOTE_ATTEMPT = """
    UPDATE deliveries SET status = ?2, error = ?3, attempts = attempts + ?4, attempted_at = ?5 WHERE id = ?1
"""
_RENEW = "UPDATE deliveries SET status = 'pending', attempts = 0, error = NULL WHERE id = ? AND status <> 'pending'"
_FORGET = """
    DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE created_at < ? ORDER BY created_at LIMIT ?)
"""
# A block has the labels of the run that it is a part of. Blocks nest.
_LABELS = """
    WITH RECURSIVE outer_runs(run_id, id, parent_id, block) AS (
        SELECT id, id, parent_id, block FROM runs WHERE id = ?
        UNION ALL
        SELECT outer_runs.run_id, runs.id, runs.parent_id, runs.block
        FROM outer_runs CROSS JOIN runs ON runs.id = outer_runs.parent_id WHERE outer_runs.block IS NOT NULL
    )
    SELECT outer_runs.run_id, label.key, label.value
    FROM outer_runs CROSS JOIN run_labels AS label ON label.run_id = outer_runs.id WHERE outer_runs.block IS NULL
"""


class SqliteSubscriptionReads(SqliteReads):
    async def get(self, name: str) -> SubscriptionRecord | None:
        return _get(self._db, name)

    async def by_id(self, subscription_id: str) -> SubscriptionRecord | None:
        row = first(self._db, f"{_SUBSCRIPTIONS} WHERE id = ?", (subscription_id,))
        return None if row is None else subscription_record(row)

    async def page(self, *, limit: int, after: str | None = None) -> list[SubscriptionRecord]:
        page = rows(self._db, f"{_SUBSCRIPTIONS} WHERE name > ? ORDER BY name LIMIT ?", (after or "", limit))
        return [subscription_record(row) for row in page]

    async def delivery(self, delivery_id: str) -> Delivery | None:
        row = first(self._db, f"{_DELIVERIES} WHERE id = ?", (delivery_id,))
        return None if row is None else delivery_record(row)

    async def deliveries(
        self, subscription_id: str, *, limit: int, before: str | None = None
    ) -> list[Delivery]:
        sql = (
            f"{_DELIVERIES} WHERE subscription_id = ?1 AND (?2 IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3"
        )
        return [delivery_record(row) for row in rows(self._db, sql, (subscription_id, before, limit))]


class SqliteSubscriptionWrites(SqliteWrites):
    __slots__ = ()

    async def all(self) -> list[SubscriptionRecord]:
        return [subscription_record(row) for row in rows(self._db, f"{_SUBSCRIPTIONS} ORDER BY name")]

    async def get(self, name: str) -> SubscriptionRecord | None:
        return _get(self._db, name)

    async def insert(self, subscription: SubscriptionRecord) -> None:
        try:
            execute(self._db, _INSERT, subscription_values(subscription))
        except apsw.ConstraintError as exc:
            if not is_duplicate(exc):
                raise
            raise AlreadyExists(f"A subscription named {subscription.name!r} already exists.") from exc

    async def update(self, subscription: SubscriptionRecord) -> None:
        execute(self._db, _UPDATE, changed_subscription_values(subscription))

    async def delete(self, name: str) -> bool:
        execute(
            self._db,
            "DELETE FROM deliveries WHERE subscription_id = (SELECT id FROM subscriptions WHERE name = ?)",
            (name,),
        )
        return execute(self._db, "DELETE FROM subscriptions WHERE name = ?", (name,)) > 0

    async def note_success(self, subscription_id: str) -> None:
        execute(self._db, _NOTE_SUCCESS, (subscription_id,))

    async def note_failure(self, subscription_id: str, error: str, *, disable_before: Instant) -> bool:
        execute(self._db, _NOTE_FAILURE, (subscription_id, self._now, error, disable_before))
        sql = "SELECT 1 FROM subscriptions WHERE id = ? AND disabled_at IS NOT NULL"
        return first(self._db, sql, (subscription_id,)) is not None

    async def labels_of(self, run_ids: Collection[RunId]) -> dict[RunId, dict[str, str]]:
        found: dict[RunId, dict[str, str]] = {}
        for run_id, key, value in query_many(self._db, _LABELS, [(run_id,) for run_id in run_ids]):
            found.setdefault(RunId(run_id), {})[key] = value
        return found

    async def put_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        execute_many(self._db, _PUT_DELIVERY, [delivery_values(delivery) for delivery in deliveries])

    async def note_attempts(self, attempts: Sequence[Attempt]) -> None:
        execute_many(self._db, _NOTE_ATTEMPT, [(*attempt_values(each), self._now) for each in attempts])

    async def renew_delivery(self, delivery_id: str) -> bool:
        return execute(self._db, _RENEW, (delivery_id,)) > 0

    async def forget_deliveries(self, before: Instant, limit: int) -> int:
        return execute(self._db, _FORGET, (before, limit))


def _get(db: apsw.Connection, name: str) -> SubscriptionRecord | None:
    row = first(db, f"{_SUBSCRIPTIONS} WHERE name = ?", (name,))
    return None if row is None else subscription_record(row)
