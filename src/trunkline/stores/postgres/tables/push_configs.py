"""
Push notification configs of A2A callers.

The run's row is the lock between a config and the transitions of its run, which write that row first.
"""

from __future__ import annotations

from collections.abc import Collection

from trunkline.ids import RunId
from trunkline.stores.port.push_configs import PushConfig, PushConfigKey
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.text_encoding import as_uuid, restored_row
from trunkline.stores.rows.published_tasks import PUSH_CONFIG_COLUMNS, push_config

_CONFIGS = f"SELECT {PUSH_CONFIG_COLUMNS.replace('run_id', 'run_id::text')} FROM push_configs"  # noqa: S608 - constants
_LOCK_RUN = "SELECT 1 FROM runs WHERE id = $1 FOR UPDATE"
_PUT = """
    INSERT INTO push_configs(run_id, id, sealed, created_at)
    SELECT $1::uuid, $2::text, $3::bytea, $4::bigint
    WHERE (SELECT count(*) FROM push_configs WHERE run_id = $1 AND id <> $2) < $5
    ON CONFLICT (run_id, id) DO UPDATE SET sealed = excluded.sealed, failures = 0, error = NULL, disabled_at = NULL
"""
_NOTE = """
    UPDATE push_configs SET failures = $3, error = $4,
        disabled_at = CASE WHEN $5 THEN coalesce(disabled_at, $6) ELSE disabled_at END
    WHERE run_id = $1 AND id = $2
"""
_ENABLE = (
    "UPDATE push_configs SET failures = 0, error = NULL, disabled_at = NULL WHERE run_id = $1 AND id = $2"
)
_RESEAL = "UPDATE push_configs SET sealed = $1 WHERE run_id = $2 AND id = $3 AND sealed = $4"


class PostgresPushConfigReads(PostgresReads):
    async def get(self, key: PushConfigKey) -> PushConfig | None:
        row = await self._first(f"{_CONFIGS} WHERE run_id = $1 AND id = $2", as_uuid(key.run_id), key.id)
        return None if row is None else push_config(restored_row(row))

    async def of_task(self, run_id: RunId) -> list[PushConfig]:
        sql = f"{_CONFIGS} WHERE run_id = $1 ORDER BY created_at, id"
        return [push_config(restored_row(row)) for row in await self._rows(sql, as_uuid(run_id))]

    async def page(self, *, limit: int, after: PushConfigKey | None = None) -> list[PushConfig]:
        conditions = "" if after is None else "WHERE (push_configs.run_id, id) > ($2::uuid, $3::text)"
        values = () if after is None else (as_uuid(after.run_id), after.id)
        sql = f"{_CONFIGS} {conditions} ORDER BY push_configs.run_id, id LIMIT $1"
        return [push_config(restored_row(row)) for row in await self._rows(sql, limit, *values)]


class PostgresPushConfigWrites(PostgresWrites):
    __slots__ = ()

    async def put(self, config: PushConfig, *, most: int) -> bool:
        key = config.key
        if await self._db.first(_LOCK_RUN, as_uuid(key.run_id)) is None:
            return False
        values = (as_uuid(key.run_id), key.id, config.sealed, config.created_at, most)
        return bool(await self._db.execute(_PUT, *values))

    async def delete(self, key: PushConfigKey) -> None:
        await self._db.first(_LOCK_RUN, as_uuid(key.run_id))
        sql = "DELETE FROM push_configs WHERE run_id = $1 AND id = $2"
        await self._db.execute(sql, as_uuid(key.run_id), key.id)

    async def keys_of(self, run_ids: Collection[RunId]) -> list[PushConfigKey]:
        sql = "SELECT run_id::text, id FROM push_configs WHERE run_id = ANY($1::uuid[])"
        found = await self._db.rows(sql, [as_uuid(run_id) for run_id in run_ids])
        return [PushConfigKey(*restored_row(row)) for row in found]

    async def note(self, key: PushConfigKey, failures: int, error: str | None, *, disable: bool) -> None:
        await self._db.execute(_NOTE, as_uuid(key.run_id), key.id, failures, error, disable, self._now)

    async def enable(self, key: PushConfigKey) -> bool:
        return bool(await self._db.execute(_ENABLE, as_uuid(key.run_id), key.id))

    async def reseal(self, key: PushConfigKey, sealed: bytes, *, expected: bytes) -> bool:
        return bool(await self._db.execute(_RESEAL, sealed, as_uuid(key.run_id), key.id, expected))
