"""Encrypting stored secrets again with another key, while others change them."""

from __future__ import annotations

from typing import cast

import pytest
from tests.contract.samples import insert, new_run

from trunkline.agents import Agent
from trunkline.errors import ConfigurationError
from trunkline.services.agents.cache import AgentCache
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.agents.specs import AgentSpec
from trunkline.services.callbacks.push_configs import PushConfigs, PushReceiver
from trunkline.services.security.rekey import Rekeying, RekeyReport
from trunkline.services.security.secrets import Secrets
from trunkline.services.security.vault import KEY_BYTES, Vault
from trunkline.stores.base import Store
from trunkline.stores.port.keys_and_secrets import Secret
from trunkline.testing import FakeClock
from trunkline.transports.address_policy import AddressPolicy

pytestmark = pytest.mark.anyio

OLD, NEW, OTHER = (bytes([number]) * KEY_BYTES for number in (1, 2, 3))


def registry_of(store: Store, clock: FakeClock, *keys: bytes) -> AgentRegistry:
    return AgentRegistry(store, Vault(*keys), AgentCache(store.agents, clock))


async def filled(store: Store, clock: FakeClock, *, count: int = 5) -> None:
    """Secrets and agents under the old key, and an agent without credentials."""
    for number in range(count):
        await Secrets(store, Vault(OLD), clock).set(f"s{number}", f"value-{number}")
        await registry_of(store, clock, OLD).create(_spec(f"a{number}", number))
    await registry_of(store, clock, OLD).create(AgentSpec(name="open", url="http://127.0.0.1:1"))


def _spec(name: str, number: int) -> AgentSpec:
    return AgentSpec(
        name=name, url="http://127.0.0.1:1", auth_type="bearer", auth_config={"token": f"t-{number}"}
    )


async def rekey(store: Store, *keys: bytes) -> RekeyReport:
    return await Rekeying(store, Vault(*keys), progress=lambda _: None, batch=2).run()


async def test_afterwards_the_new_key_alone_reads_everything(store: Store, clock: FakeClock) -> None:
    await filled(store, clock)
    report = await rekey(store, NEW, OLD)
    assert (report.rekeyed, report.checked, report.is_complete) == (10, 10, True)
    secrets, registry = Secrets(store, Vault(NEW), clock), registry_of(store, clock, NEW)
    for number in range(5):
        opened = await secrets.open(f"s{number}")
        assert opened is not None
        assert opened.value == f"value-{number}"
        assert registry.secret_of(await registry.get(f"a{number}")) == {"token": f"t-{number}"}
    assert (await registry.get("open")).secret is None
    with pytest.raises(ConfigurationError):
        await Secrets(store, Vault(OLD), clock).open("s0")


async def test_a_second_rekey_changes_nothing_and_each_batch_is_in_the_audit_log(
    store: Store, clock: FakeClock
) -> None:
    await filled(store, clock)
    await rekey(store, NEW, OLD)
    entries = [entry for entry in await store.audit.page(limit=100) if entry.action == "rekey"]
    assert [(entry.kind, entry.subject) for entry in entries] == [("secret", Vault(NEW).key_id)] * 6
    assert (await rekey(store, NEW, OLD)).rekeyed == 0
    assert len([entry for entry in await store.audit.page(limit=100) if entry.action == "rekey"]) == 6


async def test_what_no_key_can_read_is_named_and_left_as_it_is(store: Store, clock: FakeClock) -> None:
    await filled(store, clock, count=1)
    await Secrets(store, Vault(OTHER), clock).set("lost", "of another key")
    before = await store.secrets.get("lost")
    report = await rekey(store, NEW, OLD)
    assert (report.rekeyed, report.unreadable, report.unreadable_names) == (2, 1, ["secret lost"])
    assert not report.is_complete
    assert await store.secrets.get("lost") == before


class RacingStore:
    """Another process changes a secret right after it was read for the first time."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self._store = store
        self._clock = clock
        self._changed = False
        self.secrets = self
        self.agents = store.agents
        self.push_configs = store.push_configs
        self.transaction = store.transaction

    async def page(self, *, limit: int, after: str | None = None) -> list[Secret]:
        page = await self._store.secrets.page(limit=limit, after=after)
        if not self._changed:
            self._changed = True
            await Secrets(self._store, Vault(OLD), self._clock).set("s0", "the change")
        return page


async def test_a_change_during_the_rekey_wins_and_is_rekeyed_in_the_next_pass(
    store: Store, clock: FakeClock
) -> None:
    await filled(store, clock, count=1)
    report = await rekey(cast("Store", RacingStore(store, clock)), NEW, OLD)
    assert report.is_complete
    opened = await Secrets(store, Vault(NEW), clock).open("s0")
    assert opened is not None
    assert opened.value == "the change"


async def test_an_agents_change_that_began_before_does_not_bring_the_old_key_back(
    store: Store, clock: FakeClock
) -> None:
    await filled(store, clock, count=1)
    registry = registry_of(store, clock, NEW, OLD)
    stale: Agent = await registry.get("a0")
    await rekey(store, NEW, OLD)
    async with store.transaction() as tx:
        assert not await tx.agents.update(stale, stale.version)
    assert Vault(NEW).is_current((await registry.get("a0")).secret or b"")


async def test_push_notification_configs_are_encrypted_again(store: Store, clock: FakeClock) -> None:
    run_id = new_run(1).id
    await insert(store, new_run(1))
    receiver = PushReceiver(url="https://receiver.example/", version="1.0", token="t-1")
    for number in range(3):
        old = PushConfigs(store, Vault(OLD), clock, AddressPolicy())
        await old.put(old.new(run_id, f"c{number}", receiver))
    assert (await rekey(store, NEW, OLD)).rekeyed == 3
    configs = PushConfigs(store, Vault(NEW), clock, AddressPolicy())
    assert [configs.receiver(each) for each in await configs.of_task(run_id)] == [receiver] * 3
    assert (await rekey(store, OTHER)).unreadable_names[0] == f"push config {run_id}/c0"
