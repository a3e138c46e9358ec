"""What every store promises about the keys of the API."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.contract.samples import NOW

from trunkline.clock import after
from trunkline.errors import AlreadyExists
from trunkline.stores.base import ApiKey, KeyRole, Store
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio


def api_key(number: int, name: str, role: KeyRole = "viewer") -> ApiKey:
    return ApiKey(
        id=f"018f0000-0000-7000-8000-{number:012}",
        name=name,
        role=role,
        digest=bytes([number]) * 32,
        created_at=NOW,
    )


async def insert(store: Store, *keys: ApiKey) -> None:
    async with store.transaction() as tx:
        for key in keys:
            await tx.keys.insert(key)


async def revoke(store: Store, name_or_id: str) -> ApiKey | None:
    async with store.transaction() as tx:
        return await tx.keys.revoke(name_or_id)


async def test_a_key_is_found_by_its_digest_alone(store: Store) -> None:
    key = api_key(1, "ci", "admin")
    caller = msgspec.structs.replace(api_key(3, "carl", "caller"), publications=("agents/A", "workflows/ü"))
    await insert(store, key, api_key(2, "grafana"), caller)
    assert await store.keys.get(key.digest) == key
    assert await store.keys.get(caller.digest) == caller
    assert await store.keys.get(b"another") is None


async def test_a_key_is_found_by_its_id(store: Store) -> None:
    key = api_key(1, "ci", "admin")
    await insert(store, key, api_key(2, "grafana"))
    assert await store.keys.by_id(key.id) == key
    for unknown in (api_key(3, "none").id, "ci", ""):
        assert await store.keys.by_id(unknown) is None


async def test_keys_are_listed_in_the_order_of_their_creation(store: Store) -> None:
    keys = [api_key(1, "z"), api_key(2, "a"), api_key(3, "m")]
    await insert(store, *keys)
    assert await store.keys.page(limit=2) == keys[:2]
    assert await store.keys.page(limit=2, after=keys[1].id) == keys[2:]


@pytest.mark.parametrize("by", ["name", "id"])
async def test_a_revoked_key_is_found_and_says_so(store: Store, clock: FakeClock, by: str) -> None:
    key = api_key(1, "ci")
    await insert(store, key, api_key(2, "other"))
    clock.advance(timedelta(hours=1))
    revoked = msgspec.structs.replace(key, revoked_at=after(NOW, timedelta(hours=1)))
    assert await revoke(store, key.name if by == "name" else key.id) == revoked
    assert await store.keys.get(key.digest) == revoked
    assert await store.keys.page(limit=10) == [revoked, api_key(2, "other")]


async def test_a_key_that_is_not_in_use_cannot_be_revoked(store: Store) -> None:
    await insert(store, api_key(1, "ci"))
    await revoke(store, "ci")
    assert await revoke(store, "ci") is None
    assert await revoke(store, api_key(1, "ci").id) is None
    assert await revoke(store, "nobody") is None


async def test_a_key_keeps_when_it_expires_and_when_it_was_last_used(store: Store) -> None:
    key = msgspec.structs.replace(api_key(1, "ci"), expires_at=after(NOW, timedelta(days=90)))
    await insert(store, key, api_key(2, "other"))
    assert await store.keys.get(key.digest) == key
    first, last = after(NOW, timedelta(minutes=1)), after(NOW, timedelta(minutes=5))
    # Two processes write side by side, and one of them is late.
    for at in (first, last, first):
        async with store.transaction() as tx:
            await tx.keys.note_uses({key.id: at})
    assert await store.keys.get(key.digest) == msgspec.structs.replace(key, last_used_at=last)
    assert await store.keys.get(api_key(2, "other").digest) == api_key(2, "other")


async def test_a_name_is_free_again_when_its_key_is_revoked(store: Store) -> None:
    await insert(store, api_key(1, "ci"))
    with pytest.raises(AlreadyExists, match="'ci'"):
        await insert(store, api_key(2, "ci"))
    await revoke(store, "ci")
    await insert(store, api_key(2, "ci"))
    assert [(key.id, key.revoked_at is None) for key in await store.keys.page(limit=10)] == [
        (api_key(1, "ci").id, False),
        (api_key(2, "ci").id, True),
    ]
