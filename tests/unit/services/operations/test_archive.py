"""The file of an export: created anew, readable by its owner alone, under its name only when it is whole."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from trunkline.errors import Conflict
from trunkline.services.operations.archive import open_writer


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    with open_writer(tmp_path / "file"):
        assert not (tmp_path / "file").exists()
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_it_is_not_written_through_a_link_or_into_a_file_that_is_there(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    (tmp_path / "file.partial").symlink_to(elsewhere)
    with pytest.raises(Conflict, match=r"file\.partial already exists"), open_writer(tmp_path / "file"):
        pass
    assert elsewhere.read_text() == "mine"
    assert (tmp_path / "file.partial").is_symlink()
