"""What an event and a wait cost does not grow with the number of those that wait or have arrived."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from trunkline.stores.sqlite.database.migrate import upgrade
from trunkline.stores.sqlite.database.statements import rows
from trunkline.stores.sqlite.tables.automation import received_events as statements

STATEMENTS = {
    name: text
    for name, text in vars(statements).items()
    if name
    in {"_WAITING", "_WAITING_FOR_SIGNAL", "_LEFT_OVER", "_ARRIVED", "_ARRIVED_WITH_KEY", "_ARRIVED_SIGNALS"}
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_lookup_searches_an_index_and_scans_no_table(name: str, tmp_path: Path) -> None:
    database = apsw.Connection(str(tmp_path / "trunkline.db"))
    upgrade(database)
    count = next(number for number in (5, 4, 1) if number == 1 or f"?{number}" in STATEMENTS[name])
    plan = [row[3] for row in rows(database, f"EXPLAIN QUERY PLAN {STATEMENTS[name]}", [1] * count)]
    database.close()
    searched = [line for line in plan if "received_events" in line or "event_waits" in line]
    assert searched
    assert all("USING" in line and "INDEX" in line for line in searched), plan
