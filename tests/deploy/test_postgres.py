"""The cluster that tests, benchmarks and `make up-distributed` start."""

from __future__ import annotations

from pathlib import Path

import pytest
from deploy.local.errors import ServiceFailed
from deploy.local.folders import service_folder
from deploy.local.postgres import PostgresServer, start_postgres
from tests.services import private_postgres


def test_a_crashed_cluster_comes_back_with_all_that_was_committed() -> None:
    with private_postgres() as cluster:
        cluster.execute("CREATE TABLE kept (name text); INSERT INTO kept VALUES ('still here')")
        address = cluster.url()
        cluster.crash()
        assert not cluster.running
        cluster.start()
        assert cluster.url() == address
        assert cluster.execute("SELECT name FROM kept") == "still here"


def test_a_password_is_drawn_asked_for_and_kept_by_no_file(postgres: PostgresServer) -> None:
    with (
        service_folder("test") as folder,
        start_postgres(folder / "postgres", fsync=False, auth="scram-sha-256") as cluster,
    ):
        assert cluster.execute("SELECT 1") == "1"
        with pytest.raises(ServiceFailed, match="password authentication failed"):
            PostgresServer(port=cluster.port, password="guessed").execute("SELECT 1")
        assert cluster.password is not None
        password = cluster.password.encode()
        assert [file for file in files_in(folder) if password in file.read_bytes()] == []


def test_each_test_has_a_database_of_its_own_with_the_tables(
    postgres: PostgresServer, postgres_url: str
) -> None:
    assert postgres.execute("SELECT count(*) FROM runs", postgres_url.rsplit("/", 1)[1]) == "0"


def test_a_cluster_that_cannot_start_says_why(postgres: PostgresServer) -> None:
    with (
        service_folder("test") as folder,
        pytest.raises(ServiceFailed, match=r"(?s)ended before it was ready.*no_such_setting"),
    ):
        start_postgres(folder / "postgres", settings={"no_such_setting": "1"})


def test_a_cluster_whose_port_is_taken_says_so(postgres: PostgresServer) -> None:
    with (
        service_folder("test") as folder,
        pytest.raises(ServiceFailed, match=r"(?s)ended before it was ready.*could not bind"),
    ):
        start_postgres(folder / "postgres", port=postgres.port)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
