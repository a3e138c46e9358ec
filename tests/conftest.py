"""What every test can ask for."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    # The loop that the program itself runs on.
    return "asyncio", {"use_uvloop": True}
