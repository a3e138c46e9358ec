"""The schema's history: up, down and up again, on a real SQLite file; the PostgreSQL side as text."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from trunkline.errors import ConfigurationError
from trunkline.stores import migrations
from trunkline.stores.migrations import HEAD, REVISIONS, render_downgrade, render_upgrade
from trunkline.stores.sqlite.database.migrate import current_revision, downgrade, upgrade
from trunkline.stores.sqlite.database.statements import Value, execute, rows

TABLES = {
    "agents", "workflows", "workflow_versions", "runs", "steps", "events", "inbox", "timers", "tasks",
    "exchanges", "alembic_version", "leases", "outbox", "dispatches", "dead_letters", "api_keys", "moves",
    "agent_states", "secrets", "agent_events", "agent_checks", "agent_sides", "comparisons", "agent_minutes",
    "audit", "processes", "triggers", "firings", "published_tasks", "follow_ups", "received_events", "event_waits",
    "callback_queues", "callbacks", "push_configs", "run_labels", "trigger_topics",
    "trigger_occasions", "subscriptions", "deliveries",
    "schemas",
    "jobs",
    "queued_starts", "start_rates", "listed_tasks", "task_comments",
    "payloads", "payload_uses",
    "kept_outputs", "output_claims",
}  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(tmp_path / "trunkline.db"))
    yield connection
    connection.close()


def schema(database: apsw.Connection) -> list[tuple[object, ...]]:
    return list(rows(database, "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"))


def tables(database: apsw.Connection) -> set[object]:
    # Without SQLite's own.
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return {row[0] for row in rows(database, query)}


def columns(database: apsw.Connection, table: str) -> dict[object, tuple[object, ...]]:
    """Column -> (type, not null, default)."""
    query = "SELECT name, type, [notnull], dflt_value FROM pragma_table_info(?)"
    return {row[0]: row[1:] for row in rows(database, query, (table,))}


def test_the_revisions_known_without_alembic_are_alembics_own() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    script = ScriptDirectory.from_config(config)

    assert script.get_current_head() == HEAD
    assert tuple(reversed([step.revision for step in script.walk_revisions()])) == REVISIONS


WITHOUT_ALEMBIC = """
import sys, apsw
from trunkline.stores.sqlite.database.migrate import upgrade

events = []
sys.addaudithook(lambda event, _: events.append(event) if event == "subprocess.Popen" else None)
upgrade(apsw.Connection(":memory:"))
print([name for name in ("alembic", "sqlalchemy") if name in sys.modules], events)
"""


def test_a_new_database_needs_neither_alembic_nor_another_process() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT_ALEMBIC], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[] []"


def test_an_empty_database_is_brought_to_the_head(database: apsw.Connection) -> None:
    assert current_revision(database) is None
    upgrade(database)
    assert current_revision(database) == HEAD
    assert tables(database) == TABLES


def test_a_new_database_has_the_schema_of_one_that_was_upgraded(database: apsw.Connection) -> None:
    execute(database, render_upgrade("sqlite", None, "0001"))
    upgrade(database)
    with closing(apsw.Connection(":memory:")) as new:
        upgrade(new)
        assert schema(new) == schema(database)


def test_a_database_at_the_head_stays_as_it_is(database: apsw.Connection) -> None:
    upgrade(database)
    before = schema(database)
    upgrade(database)
    assert schema(database) == before


def test_down_to_base_and_up_again_gives_the_same_schema(database: apsw.Connection) -> None:
    upgrade(database)
    before = schema(database)

    downgrade(database)
    assert tables(database) == set()
    assert current_revision(database) is None

    upgrade(database)
    assert schema(database) == before


def test_one_step_down_and_up_gives_the_same_columns(database: apsw.Connection) -> None:
    execute(database, render_upgrade("sqlite", None, "0001"))
    core = columns(database, "agents")
    upgrade(database)
    whole = columns(database, "agents")

    downgrade(database, "0001")
    assert current_revision(database) == "0001"
    assert columns(database, "agents") == core

    upgrade(database)
    assert columns(database, "agents") == whole


def test_agents_of_before_the_protocols_speak_simple_a2a(database: apsw.Connection) -> None:
    execute(database, render_upgrade("sqlite", None, "0001"))
    execute(
        database,
        "INSERT INTO agents (id, name, url, created_at, updated_at) VALUES ('1', 'Old', 'http://old', 5, 5)",
    )

    upgrade(database)

    query = "SELECT name, url, created_at, protocol, protocol_config FROM agents"
    assert list(rows(database, query)) == [("Old", "http://old", 5, "simple-a2a", None)]

    downgrade(database, "0001")
    assert list(rows(database, "SELECT name, url FROM agents")) == [("Old", "http://old")]


def test_the_agents_table_has_the_seeds_columns_and_indexes(database: apsw.Connection) -> None:
    upgrade(database)
    agents = columns(database, "agents")

    assert agents["protocol"] == ("VARCHAR", 1, "'simple-a2a'")
    assert agents["protocol_config"] == ("TEXT", 0, None)
    assert agents["auth_type"] == ("VARCHAR", 1, "'none'")
    assert agents["timeout_ms"] == ("INTEGER", 1, "30000")
    indexes = {
        row[0]: row[1]
        for row in rows(database, "SELECT name, [unique] FROM pragma_index_list('agents') WHERE origin = 'c'")
    }
    assert indexes == {"ix_agents_name": 1, "ix_agents_protocol": 0, "ix_agents_published": 0}


def test_what_waits_is_found_through_partial_indexes(database: apsw.Connection) -> None:
    upgrade(database)

    def plan(query: str, *values: Value) -> str:
        return " ".join(str(row[3]) for row in rows(database, f"EXPLAIN QUERY PLAN {query}", values))

    assert "ix_inbox_unapplied" in plan("SELECT run_id FROM inbox WHERE applied = 0 ORDER BY id")
    assert "ix_tasks_queued" in plan(
        "SELECT id FROM tasks WHERE status = 'queued' AND agent = ? ORDER BY id", "A"
    )
    assert "ix_tasks_remote" in plan("SELECT id FROM tasks WHERE status = 'remote' AND poll_at <= ?", 1)
    assert "ix_tasks_busy" in plan(
        "SELECT count(*) FROM tasks WHERE status IN ('claimed', 'remote') AND agent = ?", "A"
    )


def test_a_database_of_a_newer_program_is_left_alone(database: apsw.Connection) -> None:
    upgrade(database)
    execute(database, "UPDATE alembic_version SET version_num = '9999'")
    before = schema(database)

    with pytest.raises(ConfigurationError, match="revision 9999, which this version"):
        upgrade(database)
    with pytest.raises(ConfigurationError, match="9999"):
        downgrade(database)

    assert schema(database) == before
    assert current_revision(database) == "9999"


def test_a_downgrade_is_refused_while_there_are_payloads_that_the_old_program_cannot_read(
    database: apsw.Connection,
) -> None:
    upgrade(database)
    execute(database, "INSERT INTO payload_uses(run_id, digest, size) VALUES ('1', x'00', 5)")
    before = schema(database)

    with pytest.raises(ConfigurationError, match="older versions cannot read, such as large payloads"):
        downgrade(database, "0029")

    assert schema(database) == before
    execute(database, "DELETE FROM payload_uses")
    downgrade(database, "0029")
    assert current_revision(database) == "0029"


def test_a_database_of_another_program_is_left_alone(database: apsw.Connection) -> None:
    execute(database, "CREATE TABLE runs (mine TEXT)")

    with pytest.raises(ConfigurationError, match="Cannot change the database schema"):
        upgrade(database)

    assert tables(database) == {"runs"}
    assert database.get_autocommit()


def test_a_downgrade_to_an_unknown_revision_is_refused(database: apsw.Connection) -> None:
    upgrade(database)
    with pytest.raises(ConfigurationError, match="Unknown schema revision: 7"):
        downgrade(database, "7")
    assert current_revision(database) == HEAD


def test_postgresql_gets_its_own_types_and_the_comments() -> None:
    script = render_upgrade("postgresql", None)

    assert "protocol VARCHAR DEFAULT 'simple-a2a' NOT NULL" in script
    assert "protocol_config JSONB" in script
    assert "COMMENT ON COLUMN agents.protocol IS 'Protocol type: simple-a2a or jsonrpc-2.0'" in script
    assert "COMMENT ON COLUMN agents.protocol_config IS 'Protocol-specific configuration'" in script
    assert "CREATE INDEX ix_agents_protocol ON agents (protocol)" in script
    assert "id UUID NOT NULL" in script
    assert "id BIGINT GENERATED BY DEFAULT AS IDENTITY" in script


def test_the_scripts_leave_the_transaction_to_their_caller() -> None:
    for script in (render_upgrade("postgresql", None), render_downgrade("postgresql", HEAD)):
        assert "BEGIN" not in script
        assert "COMMIT" not in script


def test_only_the_missing_part_is_rendered() -> None:
    script = render_upgrade("postgresql", "0001", "0002")
    assert "ADD COLUMN protocol" in script
    assert "CREATE TABLE" not in script
