"""What every store promises about named secrets."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.contract.samples import NOW

from trunkline.clock import after
from trunkline.stores.base import Store
from trunkline.stores.port.keys_and_secrets import Secret
from trunkline.stores.port.transfer import TABLES
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio


async def put(store: Store, name: str, sealed: bytes = b"sealed") -> Secret:
    async with store.transaction() as tx:
        return await tx.secrets.put(name, sealed)


async def test_a_secret_is_found_by_its_name(store: Store) -> None:
    sealed = bytes(range(256))
    kept = await put(store, "slack-bot", sealed)
    assert kept == Secret(name="slack-bot", sealed=sealed, version=1, created_at=NOW, updated_at=NOW)
    assert await store.secrets.get("slack-bot") == kept
    assert await store.secrets.get("slack") is None


async def test_a_secret_that_is_set_again_counts_on_and_keeps_its_beginning(
    store: Store, clock: FakeClock
) -> None:
    await put(store, "a", b"first")
    clock.advance(timedelta(hours=1))
    changed = await put(store, "a", b"second")
    later = after(NOW, timedelta(hours=1))
    assert changed == Secret(name="a", sealed=b"second", version=2, created_at=NOW, updated_at=later)
    assert await store.secrets.get("a") == changed


async def test_secrets_are_listed_by_name_page_after_page(store: Store) -> None:
    names = ["A", "B.2", "a", "a-b", "b_c"]
    for name in reversed(names):
        await put(store, name)
    assert [secret.name for secret in await store.secrets.page(limit=2)] == names[:2]
    assert [secret.name for secret in await store.secrets.page(limit=10, after="B.2")] == names[2:]


async def test_a_removed_secret_is_gone_and_its_name_is_free(store: Store) -> None:
    await put(store, "a", b"first")
    async with store.transaction() as tx:
        assert await tx.secrets.delete("a")
        assert not await tx.secrets.delete("a")
    assert await store.secrets.get("a") is None
    assert (await put(store, "a", b"second")).version == 1


async def test_what_is_rolled_back_has_not_happened(store: Store) -> None:
    await put(store, "a", b"first")

    async def fail() -> None:
        async with store.transaction() as tx:
            await tx.secrets.put("a", b"second")
            await tx.secrets.put("b", b"new")
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert [(secret.name, secret.sealed) for secret in await store.secrets.page(limit=10)] == [
        ("a", b"first")
    ]


async def test_secrets_do_not_travel_to_another_store(store: Store) -> None:
    await put(store, "a", b"of no use elsewhere")
    async with store.transaction() as tx:
        dumped = [row for table in TABLES async for rows in tx.transfer.dump(table) for row in rows]
    assert dumped == []


async def test_a_secret_is_sealed_again_only_if_it_is_still_the_same(store: Store, clock: FakeClock) -> None:
    kept = await put(store, "a", b"old key")
    clock.advance(timedelta(hours=1))
    async with store.transaction() as tx:
        assert not await tx.secrets.reseal("a", b"lost", expected=b"what was there before")
        assert not await tx.secrets.reseal("b", b"lost", expected=b"old key")
        assert await tx.secrets.reseal("a", b"new key", expected=b"old key")
    # The value is the same: neither its version nor its time changes.
    assert await store.secrets.get("a") == msgspec.structs.replace(kept, sealed=b"new key")
