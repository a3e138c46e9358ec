"""Push notification configs of A2A callers. One transaction at a time writes, so none has to be waited for."""

from __future__ import annotations

from collections.abc import Collection

from trunkline.ids import RunId
from trunkline.stores.port.push_configs import PushConfig, PushConfigKey
from trunkline.stores.rows.published_tasks import PUSH_CONFIG_COLUMNS, push_config
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import execute, first, rows

_CONFIGS = f"SELECT {PUSH_CONFIG_COLUMNS} FROM push_configs"  # noqa: S608 - constants
_PUT = """
    INSERT INTO push_configs(run_id, id, sealed, created_at)
    SELECT id, ?2, ?3, ?4 FROM runs
    WHERE id = ?1 AND (SELECT count(*) FROM push_configs WHERE run_id = ?1 AND id <> ?2) < ?5
    ON CONFLICT(run_id, id) DO UPDATE SET sealed = excluded.sealed, failures = 0, error = NULL, disabled_at = NULL
"""
_NOTE = """
    UPDATE push_configs SET failures = ?3, error = ?4,
        disabled_at = CASE WHEN ?5 THEN coalesce(disabled_at, ?6) ELSE disabled_at END
    WHERE run_id = ?1 AND id = ?2
"""
_ENABLE = "UPDATE push_configs SET failures = 0, error = NULL, disabled_at = NULL WHERE run_id = ? AND id = ?"
_RESEAL = "UPDATE push_configs SET sealed = ? WHERE run_id = ? AND id = ? AND sealed = ?"


class SqlitePushConfigReads(SqliteReads):
    async def get(self, key: PushConfigKey) -> PushConfig | None:
        row = first(self._db, f"{_CONFIGS} WHERE run_id = ? AND id = ?", key)
        return None if row is None else push_config(row)

    async def of_task(self, run_id: RunId) -> list[PushConfig]:
        sql = f"{_CONFIGS} WHERE run_id = ? ORDER BY created_at, id"
        return [push_config(row) for row in rows(self._db, sql, (run_id,))]

    async def page(self, *, limit: int, after: PushConfigKey | None = None) -> list[PushConfig]:
        last = ("", "") if after is None else after
        sql = f"{_CONFIGS} WHERE (run_id, id) > (?, ?) ORDER BY run_id, id LIMIT ?"
        return [push_config(row) for row in rows(self._db, sql, (*last, limit))]


class SqlitePushConfigWrites(SqliteWrites):
    __slots__ = ()

    async def put(self, config: PushConfig, *, most: int) -> bool:
        values = (*config.key, config.sealed, config.created_at, most)
        return bool(execute(self._db, _PUT, values))

    async def delete(self, key: PushConfigKey) -> None:
        execute(self._db, "DELETE FROM push_configs WHERE run_id = ? AND id = ?", key)

    async def keys_of(self, run_ids: Collection[RunId]) -> list[PushConfigKey]:
        sql = "SELECT id FROM push_configs WHERE run_id = ?"
        return [PushConfigKey(run_id, row[0]) for run_id in run_ids for row in rows(self._db, sql, (run_id,))]

    async def note(self, key: PushConfigKey, failures: int, error: str | None, *, disable: bool) -> None:
        execute(self._db, _NOTE, (*key, failures, error, disable, self._now))

    async def enable(self, key: PushConfigKey) -> bool:
        return bool(execute(self._db, _ENABLE, key))

    async def reseal(self, key: PushConfigKey, sealed: bytes, *, expected: bytes) -> bool:
        return bool(execute(self._db, _RESEAL, (sealed, *key, expected)))
