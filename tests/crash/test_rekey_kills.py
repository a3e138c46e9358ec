"""A rekey that is killed at each of its commits: nothing becomes unreadable, and the next one finishes the work."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.crash.crash_points import KILLED

from trunkline.jsontypes import JsonObject
from trunkline.services.agents.cache import AgentCache
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.agents.specs import AgentSpec
from trunkline.services.security.secrets import Secrets
from trunkline.services.security.vault import KEY_BYTES, Vault
from trunkline.settings import load_settings
from trunkline.system_clock import SystemClock
from trunkline.wiring import open_store

OLD, NEW = b"\x01" * KEY_BYTES, b"\x02" * KEY_BYTES
# Two batches of secrets, and two of agents.
COUNT = 4
COMMITS = 4


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'trunkline.db'}"
    return str(request.getfixturevalue("postgres_url"))


async def fill(store_url: str) -> None:
    async with open_store(load_settings({"store": store_url}), upgrade=True) as store:
        registry = AgentRegistry(store, Vault(OLD), AgentCache(store.agents, SystemClock()))
        for number in range(COUNT):
            await Secrets(store, Vault(OLD), SystemClock()).set(f"s{number}", f"value-{number}")
            auth: JsonObject = {"token": f"t-{number}"}
            await registry.create(
                AgentSpec(name=f"a{number}", url="http://127.0.0.1:1", auth_type="bearer", auth_config=auth)
            )


async def read(store_url: str, *keys: bytes) -> tuple[set[str], int]:
    """Every value, decrypted, and how many of them the first key has encrypted."""
    vault = Vault(*keys)
    async with open_store(load_settings({"store": store_url}), allow_in_use=True) as store:
        registry = AgentRegistry(store, vault, AgentCache(store.agents, SystemClock()))
        found: set[str] = set()
        current = 0
        for secret in await store.secrets.page(limit=100):
            opened = await Secrets(store, vault, SystemClock()).open(secret.name)
            assert opened is not None
            found.add(opened.value)
            current += vault.is_current(secret.sealed)
        for agent in await store.agents.page(limit=100):
            assert agent.secret is not None
            found.add(str((registry.secret_of(agent) or {})["token"]))
            current += vault.is_current(agent.secret)
        return found, current


def rekey(store_url: str, moment: str, number: int) -> int:
    command = [sys.executable, "-m", "tests.crash.rekey_process", store_url, moment, str(number)]
    return subprocess.run([*command, NEW.hex(), OLD.hex()], check=False).returncode


def test_a_rekey_that_is_killed_at_every_commit_loses_nothing_and_is_resumed(store_url: str) -> None:
    asyncio.run(fill(store_url))
    everything = {text for number in range(COUNT) for text in (f"value-{number}", f"t-{number}")}
    done = 0
    for batch in range(COMMITS):
        # Killed inside its first transaction, it has done nothing; killed after the commit, one batch more.
        for moment, more in (("before", 0), ("after", 2)):
            assert rekey(store_url, moment, 1) == KILLED, (batch, moment)
            done += more
            assert asyncio.run(read(store_url, NEW, OLD)) == (everything, done)
    assert rekey(store_url, "after", 1) == 0
    assert asyncio.run(read(store_url, NEW)) == (everything, 2 * COUNT)
