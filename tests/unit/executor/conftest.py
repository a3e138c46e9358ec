"""A stage for each test."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.unit.executor.executor_harness import ExecutorHarness, open_executor


@pytest.fixture
async def executor(tmp_path: Path) -> AsyncGenerator[ExecutorHarness]:
    async with open_executor(tmp_path) as opened:
        yield opened
