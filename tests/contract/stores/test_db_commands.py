"""The `db` commands on a SQLite file and on PostgreSQL: what they say, and how they exit."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from deploy.local.postgres import PostgresServer

from trunkline.cli.app import run_command_line
from trunkline.cli.exit_codes import Exit
from trunkline.stores.migrations import HEAD
from trunkline.stores.sqlite.database.connection import owned
from trunkline.stores.sqlite.database.statements import execute

Output = pytest.CaptureFixture[str]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    url = (
        str(request.getfixturevalue("postgres_url"))
        if request.param == "postgres"
        else f"sqlite:///{tmp_path / 'data' / 'trunkline.db'}"
    )
    monkeypatch.setenv("TRUNKLINE_STORE", url)
    return url


def db(*arguments: str) -> int:
    return run_command_line(["db", *arguments])


def test_tables_are_upgraded_checked_and_downgraded(store: str, capsys: Output) -> None:
    assert db("upgrade", "--json") == Exit.OK
    assert json.loads(capsys.readouterr().out)["revision"] == HEAD
    assert db("check") == Exit.OK
    assert db("downgrade", "0002", "--json") == Exit.OK
    assert db("check") == Exit.INVALID
    said = capsys.readouterr()
    assert "0002" in said.out
    assert "error:" in said.err
    assert "fix: Run: trunkline db upgrade" in said.err
    assert db("downgrade", "base") == Exit.OK
    assert db("check") == Exit.INVALID
    assert "no Trunkline tables" in capsys.readouterr().err
    assert db("upgrade") == Exit.OK
    assert db("check", "--json") == Exit.OK


def test_a_revision_that_there_is_not_is_refused(store: str, capsys: Output) -> None:
    assert db("upgrade") == Exit.OK
    assert db("downgrade", "4711") == Exit.INVALID
    assert "Unknown schema revision: 4711" in capsys.readouterr().err
    assert db("check") == Exit.OK


def test_tables_of_a_newer_version_are_said_and_left_alone(
    store: str, request: pytest.FixtureRequest, capsys: Output
) -> None:
    assert db("upgrade") == Exit.OK
    change = "UPDATE alembic_version SET version_num = '9999'"
    if store.startswith("sqlite"):
        with closing(apsw.Connection(store.removeprefix("sqlite:///"))) as file:
            execute(file, change)
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        server.execute(change, store.rpartition("/")[2])
    for command in (("check",), ("upgrade",), ("downgrade", "base")):
        assert db(*command) == Exit.INVALID
        assert "9999" in capsys.readouterr().err


def test_a_file_that_is_in_use_is_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    assert db("upgrade", "--data", "data") == Exit.OK
    with owned(tmp_path / "data" / "trunkline.db"):
        assert db("downgrade", "base", "--data", "data") == Exit.CONFLICT
        assert "in use" in capsys.readouterr().err
        assert db("check", "--data", "data") == Exit.OK


def test_a_database_that_cannot_be_reached_is_said_without_its_password(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setenv("TRUNKLINE_STORE", "postgresql://me:my-password@127.0.0.1:1/nothing")
    for command in ("check", "upgrade"):
        assert db(command) == Exit.UNREACHABLE
        said = capsys.readouterr()
        assert "127.0.0.1:1/nothing" in said.err
        assert "my-password" not in said.err + said.out
