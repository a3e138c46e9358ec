"""Opening a PostgreSQL store: its schema, its address and its login, and what is said when one is wrong."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from deploy.local.folders import service_folder
from deploy.local.postgres import PostgresServer, start_postgres
from tests.contract.samples import insert, new_run

from trunkline.errors import ConfigurationError, TrunklineError, Unavailable
from trunkline.stores.migrations import HEAD, render_upgrade
from trunkline.stores.postgres import open_postgres
from trunkline.stores.postgres.database.migrate import downgrade, schema_state, upgrade

pytestmark = pytest.mark.anyio


async def test_a_schema_that_is_behind_ahead_or_missing_is_said_and_upgraded(
    postgres_url: str, postgres: PostgresServer, database: str
) -> None:
    async def refusal() -> TrunklineError:
        with pytest.raises(ConfigurationError) as raised:
            async with open_postgres(postgres_url):
                pass
        return raised.value

    await downgrade(postgres_url, "0002")
    error = await refusal()
    assert ("revision 0002" in error.message, error.fix) == (True, "Run: trunkline db upgrade")
    await downgrade(postgres_url, "base")
    assert (await schema_state(postgres_url)).revision is None
    error = await refusal()
    assert ("no Trunkline tables" in error.message, error.fix) == (True, "Run: trunkline db upgrade")
    await asyncio.gather(*(upgrade(postgres_url) for _ in range(3)))
    assert (await schema_state(postgres_url)).revision == HEAD
    async with open_postgres(postgres_url, upgrade=True) as store:
        await insert(store, new_run(1))
        await store.check()
        postgres.execute("UPDATE alembic_version SET version_num = '9999'", database)
        error = await refusal()
        assert "revision 9999" in error.message
        assert "newer version" in error.fix
        # A newer schema only adds: who runs already goes on.
        await store.check()
        postgres.execute("UPDATE alembic_version SET version_num = '0002'", database)
        with pytest.raises(Unavailable, match="revision 0002"):
            await store.check()


SCHEMA = """
SELECT table_name, column_name, ordinal_position, data_type, is_nullable, column_default, is_identity
    FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 3;
SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1;
SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace ORDER BY conrelid::regclass::text, 2;
"""


async def test_a_new_database_has_the_schema_of_one_that_was_upgraded(
    postgres: PostgresServer, database: str
) -> None:
    old, new = f"{database}_old", f"{database}_new"
    try:
        for name in (old, new):
            postgres.create_database(name)
        postgres.execute(render_upgrade("postgresql", None, "0001"), old)
        for name in (old, new):
            await upgrade(postgres.url(name))
        assert postgres.execute(SCHEMA, new) == postgres.execute(SCHEMA, old)
        assert "ix_agents_protocol" in postgres.execute(SCHEMA, new)
    finally:
        for name in (old, new):
            postgres.drop_database(name)


async def test_a_database_of_another_program_is_left_alone(postgres: PostgresServer, database: str) -> None:
    name = f"{database}_other"
    postgres.create_database(name)
    try:
        postgres.execute("CREATE TABLE runs (notes text); INSERT INTO runs VALUES ('mine')", name)
        with pytest.raises(ConfigurationError, match="Cannot change the schema"):
            await upgrade(postgres.url(name))
        assert postgres.execute("SELECT notes FROM runs", name) == "mine"
        assert (await schema_state(postgres.url(name))).revision is None
    finally:
        postgres.drop_database(name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("/test_", "/nobody_"), "database does not exist"),
        (("127.0.0.1:", "127.0.0.1:1"), "PostgreSQL at"),
        (("127.0.0.1", "no-such-host.invalid"), "no-such-host.invalid"),
    ],
)
async def test_a_database_that_cannot_be_reached_is_said_without_the_password(
    postgres_url: str, change: tuple[str, str], words: str
) -> None:
    url = postgres_url.replace("://trunkline@", "://trunkline:my-password@").replace(*change)
    with pytest.raises(TrunklineError, match=words) as raised:
        async with open_postgres(url):
            pass
    assert isinstance(raised.value, Unavailable | ConfigurationError)
    assert "my-password" not in f"{raised.value.message} {raised.value.fix}"


async def test_a_wrong_password_is_said_without_it() -> None:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(service_folder("password"))
        cluster = stack.enter_context(start_postgres(folder / "postgres", fsync=False, auth="scram-sha-256"))
        assert cluster.password is not None
        url = cluster.url()
        await upgrade(url)
        with pytest.raises(Unavailable, match="rejected our credentials") as raised:
            async with open_postgres(url.replace(cluster.password, "my-password")):
                pass
        assert "my-password" not in f"{raised.value.message} {raised.value.fix}"
        assert "TRUNKLINE_STORE" in raised.value.fix
        # And when the server goes away and comes back.
        async with open_postgres(url) as store:
            await insert(store, new_run(1))
            cluster.crash()
            with pytest.raises(Unavailable):
                await insert(store, new_run(2))
            with pytest.raises(Unavailable):
                await store.check()
            cluster.start()
            await store.check()
            await insert(store, new_run(2))
            assert len(await store.runs.page(limit=10)) == 2


@pytest.mark.parametrize("url", ["postgresql://user:my-pass word@[::1/x", "postgresql://h:my-password:1:2/x"])
async def test_an_address_that_is_none_is_said_without_the_password(url: str) -> None:
    with pytest.raises(TrunklineError) as raised:
        async with open_postgres(url):
            pass
    assert "my-pass" not in f"{raised.value.message} {raised.value.fix}"
