"""What every store promises about workflows."""

from __future__ import annotations

import pytest
from tests.contract.samples import NOW, id_of, new_run, run_id
from tests.contract.samples import insert as insert_runs

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.stores.base import LastRun, Store, WorkflowVersion

pytestmark = pytest.mark.anyio


def version(name: str, number: int = 1, *, of: str | None = None) -> WorkflowVersion:
    return WorkflowVersion(
        workflow_id=id_of(of or name),
        name=name,
        version=number,
        canonical=f'{{"name":"{name}","number":{number}}}'.encode(),
        source=b"\x00\xff as written",
        created_at=Instant(number),
    )


async def insert(store: Store, *versions: WorkflowVersion) -> None:
    async with store.transaction() as tx:
        for each in versions:
            await tx.workflows.insert_version(each)


async def test_a_version_comes_back_as_it_was_written_by_name_and_by_id(store: Store) -> None:
    await insert(store, version("a"))
    assert await store.workflows.get("a") == version("a")
    assert await store.workflows.get(id_of("a")) == version("a")
    assert await store.workflows.get("b") is None


async def test_the_latest_version_is_meant_where_none_is_named(store: Store) -> None:
    await insert(store, *(version("a", number) for number in range(1, 12)), version("b"))
    assert await store.workflows.get("a") == version("a", 11)
    assert await store.workflows.get("a", 2) == version("a", 2)
    assert await store.workflows.get(id_of("a"), 10) == version("a", 10)
    assert await store.workflows.get("a", 12) is None
    assert await store.workflows.get("b", 2) is None


async def test_the_latest_version_can_be_read_in_the_transaction_that_writes(store: Store) -> None:
    async with store.transaction() as tx:
        assert await tx.workflows.latest_version("a") is None
        await tx.workflows.insert_version(version("a"))
        await tx.workflows.insert_version(version("a", 2))
        assert await tx.workflows.latest_version("a") == version("a", 2)
    assert await store.workflows.get("a") == version("a", 2)


async def test_a_version_that_exists_is_never_written_again(store: Store) -> None:
    await insert(store, version("a"), version("a", 2))
    with pytest.raises(AlreadyExists, match="Version 2 of the workflow 'a' already exists"):
        await insert(store, version("a", 2))
    with pytest.raises(AlreadyExists):
        await insert(store, version("a", 1, of="another"))
    assert await store.workflows.get("a", 1) == version("a")


async def test_lists_have_the_latest_version_of_each_in_the_order_of_names(store: Store) -> None:
    await insert(store, version("b"), version("a"), version("c"), version("a", 2))
    assert await store.workflows.page(limit=10) == [version("a", 2), version("b"), version("c")]
    assert await store.workflows.page(limit=1) == [version("a", 2)]
    assert await store.workflows.page(limit=10, after="a") == [version("b"), version("c")]


async def test_workflows_are_found_by_a_part_of_their_names(store: Store) -> None:
    await insert(store, version("Daily news"), version("news 100%"), version("other"))
    assert await store.workflows.page(limit=10, search="NEWS") == [
        version("Daily news"),
        version("news 100%"),
    ]
    assert await store.workflows.page(limit=10, search="news", after="Daily news") == [version("news 100%")]
    # It is a text, not a pattern.
    assert await store.workflows.page(limit=10, search="%") == [version("news 100%")]
    assert await store.workflows.page(limit=10, search="") == await store.workflows.page(limit=10)


async def test_the_last_runs_of_many_workflows_are_read_at_once(store: Store) -> None:
    await insert(store, version("a"), version("b"), version("c"))
    runs = [new_run(number, workflow=name) for number, name in enumerate(("a", "b", "a", "a"))]
    await insert_runs(store, *runs)
    assert await store.workflows.last_runs(["a", "b", "c"], each=2) == {
        "a": [LastRun(run_id(3), "PENDING", NOW), LastRun(run_id(2), "PENDING", NOW)],
        "b": [LastRun(run_id(1), "PENDING", NOW)],
    }
    assert await store.workflows.last_runs([], each=2) == {}


async def test_versions_are_listed_newest_first(store: Store) -> None:
    await insert(store, *(version("a", number) for number in (1, 2, 3, 4)), version("b"))
    listed = await store.workflows.versions(id_of("a"), limit=2)
    assert [each.version for each in listed] == [4, 3]
    rest = await store.workflows.versions(id_of("a"), limit=10, before=3)
    assert [each.version for each in rest] == [2, 1]
    assert await store.workflows.versions(id_of("nobody"), limit=10) == []


async def test_what_a_failed_transaction_wrote_is_gone(store: Store) -> None:
    async def fail() -> None:
        async with store.transaction() as tx:
            await tx.workflows.insert_version(version("a"))
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    assert await store.workflows.get("a") is None


async def test_workflows_that_trunkline_has_made_are_found_but_not_listed(store: Store) -> None:
    await insert(store, version("agents/A"), version("b"))
    assert await store.workflows.page(limit=10) == [version("b")]
    assert await store.workflows.page(limit=10, search="a") == []
    assert await store.workflows.get("agents/A") == version("agents/A")
