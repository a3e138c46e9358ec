"""What a start costs does not grow with what was done before."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from trunkline.clock import Instant
from trunkline.stores.sqlite import open_sqlite
from trunkline.stores.sqlite.cache import CommittedCache
from trunkline.stores.sqlite.database.statements import rows
from trunkline.stores.sqlite.transaction import SqliteTransaction

pytestmark = pytest.mark.anyio


async def test_finished_tasks_are_not_read_when_those_left_behind_are_taken_again(tmp_path: Path) -> None:
    path = tmp_path / "trunkline.db"
    async with open_sqlite(path):
        pass
    with closing(apsw.Connection(str(path))) as db:
        statements: list[str] = []

        def note(cursor: object, sql: str, values: object) -> bool:
            statements.append(sql)
            return True

        db.exec_trace = note
        cache = CommittedCache()
        await SqliteTransaction(db, Instant(1), cache.begin(), cache.pieces).tasks.reclaim("me")
        db.exec_trace = None

        assert statements
        for sql in statements:
            values = (None,) * (2 if "?2" in sql else 1)
            plan = [str(row[3]) for row in rows(db, f"EXPLAIN QUERY PLAN {sql}", values)]
            assert "SCAN tasks" not in plan, sql
