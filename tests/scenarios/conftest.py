"""A running system for each scenario, or one for a whole file."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from trunkline.testing import RunningSystem, running_system


@pytest.fixture
async def system(tmp_path: Path) -> AsyncGenerator[RunningSystem]:
    async with running_system(tmp_path / "data") as running:
        yield running


@pytest.fixture(scope="module")
async def shared_system(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningSystem]:
    """The same for every test of a file: what one of them does to it, the next one would notice."""
    async with running_system(tmp_path_factory.mktemp("shared") / "data") as running:
        yield running
