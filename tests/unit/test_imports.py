"""What a process does not load before it is needed: each of these takes megabytes, and time at every start."""

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
INSTALLED = """
import sys
import trunkline.cli.app
import trunkline.wiring.serve
import trunkline.wiring.system
files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items() if "." not in name}
print(*sorted(name for name, file in files.items() if "site-packages" in file))
"""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "library",
    [
        # Only agents with secrets, certificates or signed tokens need these.
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


# What the program itself uses, and below it what these libraries import by themselves.
USED_AT_START = {
    "cronsim", "cyclopts", "httptools", "jsonschema_rs", "msgspec", "prometheus_client", "pydantic",
    "pydantic_settings", "starlette", "structlog", "uvicorn", "uvloop", "yaml",
    "annotated_types", "anyio", "attr", "attrs", "click", "dotenv", "greenlet", "pydantic_core", "pygments", "rich",
    "sniffio", "typing_extensions", "typing_inspection",
}  # fmt: skip


def test_the_program_starts_with_these_packages_and_no_others() -> None:
    done = subprocess.run([sys.executable, "-c", INSTALLED], capture_output=True, text=True, check=True)
    # Names with an underscore belong to the installation itself.
    installed = {name for name in done.stdout.split() if not name.startswith("_")}
    assert installed - USED_AT_START == set()
    assert "msgspec" in installed


def test_a_zone_loads_neither_the_store_of_runs_nor_the_state_machine() -> None:
    code = "import sys, trunkline.zones; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unused = (
        "trunkline.stores.sqlite.store",
        "trunkline.stores.base",
        "trunkline.machine",
    )
    assert [name for name in done.stdout.split() if name.startswith(unused)] == []
