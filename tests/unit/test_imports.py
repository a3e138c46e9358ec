"""What a process loads before anybody needs it: each of these takes megabytes and a part of every start."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = """
import sys
import trunkline.wiring
import trunkline.wiring.system
import trunkline.api.app
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "library",
    [
        # Secrets, certificates and signed tokens, which many registries have none of.
        "cryptography",
        "joserfc",
        # What the test kit needs, and nothing else.
        "aiohttp",
        # Stores, brokers and transports that are not in use.
        "asyncpg",
        "boto3",
        "botocore",
        "confluent_kafka",
        # Migrations, which are SQL by the time they run.
        "alembic",
        "sqlalchemy",
    ],
)
def test_the_program_starts_without_what_only_some_need(library: str, loaded: set[str]) -> None:
    assert library not in loaded
    assert "httptools" in loaded
