"""A database or a broker that is not as it should be: said on stderr and at /readyz, and nothing is lost meanwhile."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

import pytest
from deploy.local.postgres import PostgresServer
from tests.scenarios.distributed.held_run import held_run, prepare, runs_through
from tests.scenarios.distributed.server_process import server_process, trunkline
from tests.scenarios.distributed.topic_records import TopicReader

from trunkline.jsontypes import Json
from trunkline.stores.migrations import HEAD, REVISIONS
from trunkline.testing import ScriptedAgent, simple_success

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]

# --- the database


@pytest.fixture
def database(backend_settings: Mapping[str, str]) -> str:
    return backend_settings["TRUNKLINE_STORE"].rpartition("/")[2]


async def test_a_database_one_migration_behind_is_waited_for_until_it_is_upgraded(tmp_path: Path) -> None:
    assert (await trunkline("db", "downgrade", REVISIONS[-2])).code == 0
    async with server_process(tmp_path) as server:
        detail = await server.misses("store", f"is at schema revision {REVISIONS[-2]}", f"needs {HEAD}")
        line = await server.says("waiting_for_dependency")
        assert (line["dependency"], str(line["reason"]) in detail) == ("store", True)
        assert "trunkline db upgrade" in str(line["fix"])
        assert (await trunkline("db", "upgrade")).code == 0
        await runs_through(server)


async def test_a_database_that_a_newer_program_has_written_is_left_alone(
    tmp_path: Path, postgres: PostgresServer, database: str
) -> None:
    postgres.execute("UPDATE alembic_version SET version_num = '9999'", database)
    async with server_process(tmp_path) as server:
        await server.misses("store", "is at schema revision 9999", "does not support")
        line = await server.says("waiting_for_dependency")
        assert "Install the newer version" in str(line["fix"])
        refused = await trunkline("db", "upgrade")
        assert refused.code != 0
        assert "9999" in refused.err
        postgres.execute(f"UPDATE alembic_version SET version_num = '{HEAD}'", database)  # noqa: S608 - our own text
        await runs_through(server)


async def test_a_login_that_postgres_refuses_is_named_without_its_password(
    tmp_path: Path, postgres: PostgresServer, database: str
) -> None:
    user, password = f"user_{secrets.token_hex(6)}", "canary-90c1"
    url = f"postgresql://{user}:{password}@127.0.0.1:{postgres.port}/{database}"
    async with server_process(tmp_path, TRUNKLINE_STORE=url) as server:
        await server.misses("store", "it rejected our credentials", user)
        line = await server.says("waiting_for_dependency")
        assert "TRUNKLINE_STORE" in str(line["fix"])
        postgres.execute(f"CREATE ROLE {user} LOGIN SUPERUSER")
        await runs_through(server)
        assert await server.stop() == 0
    postgres.execute(f"DROP ROLE {user}")
    assert password not in (tmp_path / "serve.log").read_text()


async def test_a_database_that_does_not_exist_is_named_with_the_fix(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    name = f"test_{secrets.token_hex(8)}"
    async with server_process(tmp_path, TRUNKLINE_STORE=postgres.url(name)) as server:
        await server.misses("store", "the database does not exist", name)
        assert "createdb" in str((await server.says("waiting_for_dependency"))["fix"])
        postgres.create_database(name)
        await server.misses("store", "no Trunkline tables yet")
        assert (await trunkline("db", "upgrade", TRUNKLINE_STORE=postgres.url(name))).code == 0
        await runs_through(server)
    postgres.drop_database(name)


FULL = """
CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'could not extend file "base/1/2": No space left on device' USING ERRCODE = '53100';
END $$;
"""


def fill_disk(postgres: PostgresServer, database: str) -> None:
    """Every insert fails as on a full disk."""
    tables = postgres.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'",
        database,
    ).split()
    triggers = [
        f"CREATE TRIGGER full_disk BEFORE INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION no_space();"
        for table in tables
    ]
    postgres.execute("\n".join([FULL, *triggers]), database)


async def test_a_full_disk_of_the_database_stops_the_work_and_loses_none(
    tmp_path: Path, postgres: PostgresServer, database: str
) -> None:
    async with server_process(tmp_path) as server, held_run(server) as work:
        fill_disk(postgres, database)
        work.gate.opened.set()
        await server.misses("store", "the disk is full")
        line = await server.says("store_unavailable", lambda line: "disk is full" in str(line["error"]))
        assert "Free some disk space" in str(line["fix"])
        refused = await server.call("POST", "/workflows/two/execute", {})
        assert refused.status == 503
        assert "the disk is full" in str(refused.json["detail"])
        assert await server.status(work.run_id) == "RUNNING"
        postgres.execute("DROP FUNCTION no_space() CASCADE", database)
        await work.end()


async def test_a_database_for_reading_only_stops_the_work_and_loses_none(
    tmp_path: Path, postgres: PostgresServer, database: str
) -> None:
    def set_reading_only(value: str) -> None:
        postgres.execute(f'ALTER DATABASE "{database}" SET default_transaction_read_only = {value}')
        # It holds for new connections.
        postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()",
            database,
        )

    async with server_process(tmp_path) as server, held_run(server) as work:
        set_reading_only("on")
        work.gate.opened.set()
        await server.misses("store", "is read-only")
        line = await server.says("store_unavailable", lambda line: "read-only" in str(line["error"]))
        assert "Point TRUNKLINE_STORE at the primary" in str(line["fix"])
        set_reading_only("off")
        await work.end()


# --- the broker


async def test_topics_that_do_not_exist_are_named_and_used_once_they_are_made(
    tmp_path: Path, kafka: TopicReader
) -> None:
    prefix = kafka.topics.tasks.removesuffix("tasks")
    names = {
        "TRUNKLINE_TASKS_TOPIC": f"{prefix}other.tasks",
        "TRUNKLINE_RESULTS_TOPIC": f"{prefix}other.results",
        "TRUNKLINE_EVENTS_TOPIC": f"{prefix}other.events",
    }
    async with server_process(tmp_path, **names) as server:
        await server.misses("broker", f"Kafka has no topic {prefix}other.", "trunkline topics create")
        assert (await server.says("waiting_for_dependency"))["dependency"] == "broker"
        made = await trunkline("topics", "create", **names)
        assert made.code == 0, made.err
        await runs_through(server)


async def test_without_the_topic_of_the_events_runs_go_on_and_their_events_wait(
    tmp_path: Path, kafka: TopicReader
) -> None:
    events = {"TRUNKLINE_EVENTS_TOPIC": f"{kafka.topics.events}.later"}
    async with ScriptedAgent(simple_success("ok")) as agent, server_process(tmp_path, **events) as server:
        await server.is_ready()
        await prepare(server, agent)
        run_id = await server.start("two")
        assert await server.ended(run_id) == "COMPLETED"
        line = await server.says("messages_undelivered")
        assert line["topic"] == events["TRUNKLINE_EVENTS_TOPIC"]
        assert "trunkline topics create" in str(line["error"])
        await server.misses("broker", str(line["topic"]), "trunkline topics create")
        assert (await trunkline("topics", "create", **events)).code == 0
        seen = await kafka.read(str(line["topic"]), lambda seen: len(seen) >= 6)
        assert {record.key for record in seen} == {run_id.encode()}
        await server.is_ready()


async def test_too_few_partitions_are_a_warning_with_its_fix_and_work_goes_on(
    tmp_path: Path, kafka: TopicReader
) -> None:
    six = {"TRUNKLINE_TOPIC_PARTITIONS": "6"}
    async with ScriptedAgent(simple_success("ok")) as agent, server_process(tmp_path, **six) as server:
        await server.is_ready()
        await prepare(server, agent)
        line = await server.says("topic_lacks_partitions")
        assert "4 of 6 partitions" in str(line["reason"])
        assert "trunkline topics create" in str(line["fix"])
        ready = await server.answer("GET", "//readyz")
        assert any(kafka.topics.tasks in str(warning) for warning in _list(ready["warnings"]))
        assert await server.ended(await server.start("two")) == "COMPLETED"
        assert (await trunkline("topics", "create", **six)).code == 0
        # Whoever takes in records finds the new partitions by itself.
        runs = [await server.start("two") for _ in range(12)]
        assert [await server.ended(run) for run in runs] == ["COMPLETED"] * 12


def _list(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


async def test_a_message_of_another_version_is_logged_and_becomes_a_dead_letter(
    tmp_path: Path, kafka: TopicReader
) -> None:
    async with server_process(tmp_path) as server:
        await runs_through(server)
        (sent, *_) = await kafka.written(kafka.topics.tasks)
        await kafka.write(sent.topic, sent.value, sent.key, {**sent.headers, "trunkline-version": b"7"})
        line = await server.says("dead_letter")
        assert (line["topic"], "has version 7" in str(line["reason"])) == (kafka.topics.tasks, True)
        (letter,) = _list((await server.answer("GET", "/dead-letters"))["items"])
        assert isinstance(letter, dict)
        assert letter["reason"] == line["reason"]
        await server.is_ready()
