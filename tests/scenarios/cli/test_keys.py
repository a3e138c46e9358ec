"""Keys from the command line: made before the server, taken by it, and shown by nothing afterwards."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.forked_program import trunkline_command

from trunkline.cli.demo.processes import running
from trunkline.cli.rendering.times import date_time


class Result(NamedTuple):
    code: int
    out: str
    err: str


def trunkline(*arguments: str, **environment: str) -> Result:
    done = subprocess.run(
        [*trunkline_command(), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    return Result(done.returncode, done.stdout, done.stderr)


class GuardedServer(NamedTuple):
    url: str
    data: str
    log: Path
    key: str

    def call(self, *arguments: str, key: str | None = None) -> Result:
        return trunkline(
            *arguments, TRUNKLINE_URL=self.url, **({} if key is None else {"TRUNKLINE_API_KEY": key})
        )


@pytest.fixture(scope="module")
def guarded(
    shared_settings: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Generator[GuardedServer]:
    """Listens on every address, so it asks for keys, on loopback too."""
    folder = tmp_path_factory.mktemp("guarded")
    data, log = str(folder / "data"), folder / "log"
    key = trunkline("keys", "create", "root", "--role", "admin", "--data", data).out.strip()
    arguments = [
        "trunkline",
        "up",
        "--host",
        "0.0.0.0",
        "--port",
        "0",
        "--data",
        data,
        "--log-level",
        "debug",
    ]
    with running("Trunkline", arguments, log) as url:
        yield GuardedServer(url.replace("0.0.0.0", "127.0.0.1"), data, log, key)


def test_a_key_is_printed_alone_and_once(tmp_path: Path) -> None:
    place = ("--data", str(tmp_path))
    made = trunkline("keys", "create", "ci", "--role", "operator", *place)
    assert made.code == 0
    assert made.out.startswith("tl_")
    assert len(made.out.splitlines()) == 1
    listed = trunkline("keys", "list", *place, "--json")
    (shown,) = json.loads(listed.out)["items"]
    assert (shown["name"], shown["role"], shown["revoked_at"]) == ("ci", "operator", None)
    for file in tmp_path.iterdir():
        assert made.out.strip().encode() not in file.read_bytes(), file


def test_a_key_can_expire(tmp_path: Path) -> None:
    place = ("--data", str(tmp_path))
    made = trunkline("keys", "create", "guest", "--role", "viewer", "--expires-in", "90d", *place, "--json")
    shown = json.loads(made.out)
    created, expires = (datetime.fromisoformat(shown[name]) for name in ("created_at", "expires_at"))
    assert expires - created == timedelta(days=90)
    listed = trunkline("keys", "list", *place)
    assert "active" in listed.out
    assert date_time(shown["expires_at"]) in listed.out
    assert trunkline("keys", "create", "a", "--role", "viewer", "--expires-in", "90", *place).code == 2


def test_a_name_is_one_keys_until_that_is_revoked(tmp_path: Path) -> None:
    place = ("--data", str(tmp_path))
    assert trunkline("keys", "create", "ci", "--role", "viewer", *place).code == 0
    assert trunkline("keys", "create", "ci", "--role", "admin", *place).code == 4
    assert trunkline("keys", "revoke", "ci", *place).code == 0
    assert trunkline("keys", "revoke", "ci", *place).code == 3
    assert trunkline("keys", "create", "ci", "--role", "admin", *place, "--json").code == 0
    assert "revoked" in trunkline("keys", "list", *place).out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("create", "a"), 2), (("create", "a", "--role", "root"), 2), (("create", "a b", "--role", "admin"), 7)],
)
def test_an_invalid_request_is_refused(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    result = trunkline("keys", *arguments, "--data", str(tmp_path))
    assert (result.code, result.out) == (code, "")


def test_without_a_key_the_server_does_not_listen_to_the_world(tmp_path: Path) -> None:
    result = trunkline("up", "--host", "0.0.0.0", "--port", "0", "--data", str(tmp_path))
    assert (result.code, result.out) == (5, "")
    assert "trunkline keys create NAME --role admin" in result.err


def test_the_command_line_brings_its_key(guarded: GuardedServer) -> None:
    refused = guarded.call("runs", "list")
    assert (refused.code, refused.out) == (5, "")
    assert "TRUNKLINE_API_KEY" in refused.err
    assert guarded.call("runs", "list", "--json", key="tl_wrong").code == 5
    assert guarded.call("runs", "list", key=guarded.key).code == 0
    assert guarded.call("runs", "list", key=f" {guarded.key}\n").code == 0


def test_too_little_a_role_is_not_allowed(guarded: GuardedServer) -> None:
    made = trunkline("keys", "create", "reader", "--role", "viewer", "--data", guarded.data)
    result = guarded.call("agents", "delete", "Nobody", key=made.out.strip())
    assert result.code == 5
    assert "--role admin" in result.err


@pytest.mark.parametrize("odd", ["tl_ä", "tl_a b", "tl_a\r\nX-Other: 1"])
def test_what_cannot_be_a_key_is_not_sent_and_not_shown(guarded: GuardedServer, odd: str) -> None:
    result = guarded.call("runs", "list", key=odd)
    assert result.code == 2
    assert odd not in result.out + result.err


def test_no_command_and_no_log_shows_the_key(guarded: GuardedServer) -> None:
    for arguments in (
        ("runs", "list", "--json"),
        ("runs", "show", "none", "--json"),
        ("runs", "wire", "none", "--curl"),
        ("config", "show"),
        ("config", "show", "--json"),
        ("doctor", "--json"),
        ("keys", "list", "--data", guarded.data, "--json"),
    ):
        result = guarded.call(*arguments, key=guarded.key)
        assert guarded.key not in result.out + result.err, arguments
    assert guarded.key not in guarded.log.read_text()
