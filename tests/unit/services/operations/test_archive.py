"""The file of an export: always a new file, readable by its owner alone, under its name only when it is whole."""

from __future__ import annotations

import gc
import stat
from pathlib import Path

import pytest

from trunkline.clock import Instant
from trunkline.errors import Conflict
from trunkline.services.operations.archive import open_writer


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    with open_writer(tmp_path / "file"):
        assert not (tmp_path / "file").exists()
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_a_writer_that_does_not_finish_writes_nothing_later(tmp_path: Path) -> None:
    with open_writer(tmp_path / "file") as writer:
        writer.begin(Instant(0))
    size = (tmp_path / "file").stat().st_size
    # A compressor that is still open would write to the closed file.
    del writer
    gc.collect()
    assert (tmp_path / "file").stat().st_size == size


def test_it_is_not_written_through_a_link_or_into_a_file_that_is_there(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    (tmp_path / "file.partial").symlink_to(elsewhere)
    with pytest.raises(Conflict, match=r"file\.partial already exists"), open_writer(tmp_path / "file"):
        pass
    assert elsewhere.read_text() == "mine"
    assert (tmp_path / "file.partial").is_symlink()
