"""A real SQLite file to claim tasks from, with a clock that stands until it is moved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trunkline.stores.base import Store
from trunkline.stores.sqlite import open_sqlite
from trunkline.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    async with open_sqlite(tmp_path / "trunkline.db", clock=clock) as opened:
        yield opened
