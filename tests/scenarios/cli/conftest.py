"""The real program: `trunkline up` in a child process, and a way to call every other command against it."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from trunkline.cli.demo.processes import running


@pytest.fixture(scope="module")
def trunkline_url(
    shared_settings: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Generator[str]:
    folder: Path = tmp_path_factory.mktemp("trunkline")
    arguments = ["trunkline", "up", "--port", "0", "--data", str(folder / "data")]
    with running("Trunkline", arguments, folder / "log") as url:
        yield url


@pytest.fixture(autouse=True)
def in_an_empty_folder(
    backend_settings: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TRUNKLINE_")]:
        if name not in backend_settings:
            monkeypatch.delenv(name)
