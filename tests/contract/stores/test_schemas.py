"""What every store promises about saved JSON Schemas."""

from __future__ import annotations

import pytest
from tests.contract.samples import NOW

from trunkline.stores.base import SavedSchema, Store

pytestmark = pytest.mark.anyio

TEXT = b'{"type": "object",  "title": "\xc3\xbc"}'


async def put(store: Store, name: str, schema: bytes = TEXT) -> SavedSchema:
    async with store.transaction() as tx:
        return await tx.schemas.put(name, schema)


async def test_a_schema_is_kept_byte_by_byte(store: Store) -> None:
    saved = await put(store, "review")
    assert saved == SavedSchema(name="review", schema=TEXT, version=1, created_at=NOW, updated_at=NOW)
    assert await store.schemas.get("review") == saved
    assert await store.schemas.get("other") is None


async def test_a_changed_schema_is_the_next_version(store: Store) -> None:
    await put(store, "review")
    changed = await put(store, "review", b"{}")
    assert (changed.schema, changed.version) == (b"{}", 2)
    async with store.transaction() as tx:
        assert await tx.schemas.get("review") == changed


async def test_schemas_are_listed_by_name_page_by_page(store: Store) -> None:
    for name in ("b", "a", "B", "c"):
        await put(store, name)
    first = await store.schemas.page(limit=2)
    assert [saved.name for saved in first] == ["B", "a"]
    assert [saved.name for saved in await store.schemas.page(limit=9, after="a")] == ["b", "c"]


async def test_some_schemas_are_found_by_their_names(store: Store) -> None:
    for name in ("a", "b", "c"):
        await put(store, name)
    assert {saved.name for saved in await store.schemas.some({"a", "c", "x"})} == {"a", "c"}
    assert await store.schemas.some(set()) == []


async def test_a_schema_can_be_deleted_once(store: Store) -> None:
    await put(store, "review")
    async with store.transaction() as tx:
        assert await tx.schemas.delete("review")
        assert not await tx.schemas.delete("review")
    assert await store.schemas.get("review") is None
