"""`trunkline import --from litecone postgresql://…`: definitions from litecone's own database, which is only read."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
from deploy.local.postgres import PostgresServer
from tests.scenarios.cli.test_command_line import Trunkline, trunkline
from tests.scenarios.litecone import IN_A_ROW, SEVERAL_STEPS_EACH
from tests.services import fresh_database

from trunkline.errors import Invalid
from trunkline.jsontypes import Json, JsonObject
from trunkline.stores.postgres.litecone_database import ReadLimits, read_litecone

pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

__all__ = ["trunkline"]

SECRET = "s3cr3t-of-the-database"
# The tables that litecone's first migration creates, as far as definitions are in them.
SCHEMA = """
    CREATE TABLE agents (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        name varchar(255) NOT NULL UNIQUE,
        url varchar(512) NOT NULL,
        description text,
        auth_type varchar(50),
        auth_config jsonb,
        timeout_ms integer NOT NULL DEFAULT 30000,
        retry_config jsonb,
        status varchar(50) NOT NULL DEFAULT 'active',
        created_by varchar(255),
        updated_by varchar(255),
        created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
        updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP
    );
    CREATE TABLE workflow_definitions (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        name varchar(255) NOT NULL,
        description text,
        version integer NOT NULL DEFAULT 1,
        workflow_data jsonb NOT NULL,
        status varchar(50) NOT NULL DEFAULT 'active',
        created_by varchar(255),
        updated_by varchar(255),
        created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
        updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP
    );
    CREATE UNIQUE INDEX idx_workflow_definitions_name_version ON workflow_definitions (name, version);
"""


@pytest.fixture
def empty_database(postgres: PostgresServer) -> Generator[str]:
    with fresh_database(postgres, template="template1") as url:
        yield url


@pytest.fixture
async def database(empty_database: str) -> str:
    await execute(empty_database, SCHEMA)
    return empty_database


async def execute(url: str, sql: str, *values: object) -> None:
    connection = await asyncpg.connect(url)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - untyped
    try:
        await connection.execute(sql, *values)  # pyright: ignore[reportUnknownMemberType] - untyped
    finally:
        await connection.close()  # pyright: ignore[reportUnknownMemberType] - untyped


async def add_agent(url: str, name: str, **columns: Json) -> None:
    row: JsonObject = {"name": name, "url": "http://127.0.0.1:1/agent", "status": "active", **columns}
    await execute(
        url,
        "INSERT INTO agents (name, url, auth_type, auth_config, retry_config, status) "
        "SELECT name, url, auth_type, auth_config, retry_config, status "
        "FROM jsonb_populate_record(NULL::agents, $1::jsonb)",
        json.dumps(row),
    )


async def add_workflow(url: str, data: JsonObject, version: int = 1, status: str = "active") -> None:
    await execute(
        url,
        "INSERT INTO workflow_definitions (name, version, workflow_data, status) VALUES ($1, $2, $3::jsonb, $4)",
        data["name"],
        version,
        json.dumps(data),
        status,
    )


def with_password(url: str) -> str:
    parts = urlsplit(url)
    return url.replace(parts.netloc, f"{parts.username}:{SECRET}@{parts.hostname}:{parts.port}")


async def test_the_latest_definitions_are_imported_and_secrets_stay_there(
    trunkline: Trunkline, database: str
) -> None:
    await add_agent(
        database, "Brewer", auth_type="apikey", auth_config={"key": SECRET, "header_name": "X-Tea"}
    )
    await add_agent(database, "Taster", retry_config={"max_retries": 2, "initial_delay_ms": 100})
    await add_agent(database, "Gone", status="deleted")
    await add_workflow(database, {**IN_A_ROW, "steps": {}}, version=1)
    await add_workflow(database, IN_A_ROW, version=2)
    await add_workflow(database, SEVERAL_STEPS_EACH, status="deleted")
    url = with_password(database).replace("postgresql://", "postgresql+asyncpg://")
    done = await trunkline("import", "--from", "litecone", url, "--out", "out")
    assert (done.code, SECRET in done.out + done.err) == (0, False), done
    assert [path.name for path in Path("out/workflows").iterdir()] == ["brew-and-taste.yaml"]
    agents = Path("out/agents.yaml").read_text()
    assert "X-Tea" in agents
    assert "max_attempts: 3" in agents
    assert not any(word in agents for word in (SECRET, "Gone"))


async def test_what_cannot_be_carried_over_is_reported_with_its_table(
    trunkline: Trunkline, database: str
) -> None:
    await execute(database, "ALTER TABLE agents ADD COLUMN colour text DEFAULT 'red'")
    await add_agent(database, "A")
    done = await trunkline("import", "--from", "litecone", database)
    parts = urlsplit(database)
    assert done.code == 7, done
    assert f"{parts.hostname}:{parts.port}{parts.path} agents: A: " in done.err
    assert "colour" in done.err


async def test_a_database_that_is_not_one_of_litecone_is_refused(
    trunkline: Trunkline, empty_database: str
) -> None:
    done = await trunkline("import", "--from", "litecone", with_password(empty_database))
    assert done.code == 7, done
    assert "no tables 'agents' and 'workflow_definitions' of litecone" in done.err
    assert SECRET not in done.err + done.out


async def test_nothing_is_changed_in_the_database(trunkline: Trunkline, database: str) -> None:
    # A view in the place of the table that writes when it is read.
    await execute(
        database,
        """
        ALTER TABLE agents RENAME TO kept;
        CREATE FUNCTION writes() RETURNS boolean LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO kept (name, url) VALUES ('written', 'x'); RETURN true; END $$;
        CREATE VIEW agents AS SELECT * FROM kept WHERE writes();
        """,
    )
    await execute(database, "INSERT INTO kept (name, url) VALUES ('A', 'http://a')")
    done = await trunkline("import", "--from", "litecone", database)
    assert "read-only transaction" in done.err, done


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (f"postgresql://u:{SECRET}@127.0.0.1:1/litecone", "The litecone database at 127.0.0.1:1/litecone"),
        (f"postgresql://u:12/{SECRET}@127.0.0.1/litecone", "The URL of litecone's database is not valid"),
        (f"postgresql://u:{SECRET}@127.0.0.1:port/litecone", "The URL of litecone's database is not valid"),
    ],
)
async def test_a_wrong_url_is_explained_without_its_password(
    trunkline: Trunkline, url: str, message: str
) -> None:
    done = await trunkline("import", "--from", "litecone", url)
    assert done.code != 0
    assert message in done.err
    assert SECRET not in done.err + done.out


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (ReadLimits(rows=2), "it has more than 2 agents"),
        (ReadLimits(row_bytes=100), "the row 'A0' of its agents has more than 100 bytes"),
        (ReadLimits(total_bytes=900), "its definitions have more than 900 bytes"),
    ],
)
async def test_more_than_a_bounded_amount_is_refused(database: str, limits: ReadLimits, message: str) -> None:
    for number in range(3):
        await add_agent(database, f"A{number}")
    assert len((await read_litecone(database)).agents) == 3
    with pytest.raises(Invalid, match=message):
        await read_litecone(database, limits)
