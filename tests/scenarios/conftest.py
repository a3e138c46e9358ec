"""A running system for each scenario."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from trunkline.testing import RunningSystem, running_system


@pytest.fixture
async def system(tmp_path: Path) -> AsyncGenerator[RunningSystem]:
    async with running_system(tmp_path / "data") as running:
        yield running
