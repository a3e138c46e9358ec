from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.cli.commands.deployment.doctor import (
    check_data_folder,
    check_key_file,
    check_python,
    check_server,
    check_sqlite,
)
from trunkline.cli.rest.client import Client


def test_an_old_python_fails_with_what_to_install() -> None:
    check = check_python((3, 10, 2))
    assert not check.ok
    assert "3.11" in check.fix
    assert check_python().ok


def test_an_old_sqlite_fails() -> None:
    assert not check_sqlite("3.51.2.0").ok
    assert check_sqlite("3.51.3.0").ok
    assert check_sqlite().ok


def test_a_data_folder_that_can_be_made_is_good_enough(tmp_path: Path) -> None:
    assert check_data_folder(tmp_path).ok
    assert check_data_folder(tmp_path / "not" / "yet").ok
    assert not (tmp_path / "not").exists()


def test_a_data_folder_that_is_a_file_fails(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    check = check_data_folder(tmp_path / "data")
    assert not check.ok
    assert "not a folder" in check.found


@pytest.mark.parametrize(("mode", "ok"), [(0o600, True), (0o400, True), (0o640, False), (0o604, False)])
def test_a_key_file_is_for_its_owner_alone(tmp_path: Path, mode: int, ok: bool) -> None:
    key_file = tmp_path / "secret.key"
    key_file.write_text("k")
    key_file.chmod(mode)
    check = check_key_file(key_file)
    assert check.ok is ok
    assert check.fix == f"chmod 600 {key_file}"


def test_a_key_file_that_is_still_to_be_made_is_fine(tmp_path: Path) -> None:
    assert check_key_file(tmp_path / "secret.key").ok


def test_a_server_that_is_away_is_one_failed_check() -> None:
    # Port 9 (discard) is privileged: nothing of ours ever listens there.
    (check,) = check_server(Client("http://127.0.0.1:9"))
    assert not check.ok
    assert "trunkline up" in check.fix
