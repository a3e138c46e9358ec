"""What every store promises about labels: a run is found by those that it has, and a change is never lost."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.contract.samples import NOW, insert, new_run, run_id, transition, write

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.base import Store
from trunkline.stores.port.run_filters import RunFilter
from trunkline.stores.port.transfer import RUN_LABELS

pytestmark = pytest.mark.anyio


async def start(store: Store, number: int, **labels: str) -> None:
    await insert(store, msgspec.structs.replace(new_run(number), labels=labels))


async def labels_of(store: Store, number: int) -> dict[str, str]:
    found = await store.runs.get(run_id(number))
    assert found is not None
    return found[0].labels


async def with_label(store: Store, key: str, value: str) -> list[RunId]:
    return [run.id for run in await store.runs.page(limit=10, where=RunFilter(labels=((key, value),)))]


async def set_label(store: Store, number: int, key: str, value: str) -> None:
    async with store.transaction() as tx:
        labels = (await tx.runs.labels([run_id(number)]))[run_id(number)]
        # The others get their turn between reading and writing.
        await asyncio.sleep(0)
        await tx.runs.set_labels({run_id(number): {**labels, key: value}})


async def test_a_run_is_found_by_each_of_its_labels(store: Store) -> None:
    await start(store, 1, customer="acme", note="a:b, ü 漢字")
    await start(store, 2, customer="other")
    await start(store, 3)
    assert await with_label(store, "customer", "acme") == [run_id(1)]
    assert await with_label(store, "note", "a:b, ü 漢字") == [run_id(1)]
    assert await with_label(store, "customer", "ACME") == []
    assert [await labels_of(store, number) for number in (1, 2, 3)] == [
        {"customer": "acme", "note": "a:b, ü 漢字"}, {"customer": "other"}, {},
    ]  # fmt: skip


async def test_set_labels_replace_those_that_the_run_had(store: Store) -> None:
    await start(store, 1, customer="acme", team="billing")
    async with store.transaction() as tx:
        await tx.runs.set_labels({run_id(1): {"team": "sales", "env": "prod"}})
    assert await labels_of(store, 1) == {"team": "sales", "env": "prod"}
    assert await with_label(store, "team", "sales") == [run_id(1)]
    assert await with_label(store, "team", "billing") == []
    assert await with_label(store, "customer", "acme") == []
    async with store.transaction() as tx:
        await tx.runs.set_labels({run_id(1): {}})
    assert await labels_of(store, 1) == {}
    assert await with_label(store, "team", "sales") == []


async def test_an_unknown_run_has_no_labels_to_change(store: Store) -> None:
    async with store.transaction() as tx:
        assert await tx.runs.labels([run_id(1), RunId("nobody's")]) == {}
        assert await tx.runs.labels([]) == {}


async def test_changes_at_the_same_time_are_all_kept(store: Store) -> None:
    await start(store, 1)
    await asyncio.gather(*(set_label(store, 1, f"k{number}", "x") for number in range(8)))
    assert await labels_of(store, 1) == {f"k{number}": "x" for number in range(8)}


async def test_a_transition_and_a_change_of_labels_leave_each_other_alone(store: Store) -> None:
    await start(store, 1, customer="acme")
    await write(store, transition(1))
    await set_label(store, 1, "team", "sales")
    assert not await write(store, transition(1, expected=1, status="COMPLETED"))
    assert await labels_of(store, 1) == {"customer": "acme", "team": "sales"}


async def test_a_repeated_idempotency_key_leaves_the_labels_of_the_first_run(store: Store) -> None:
    first = msgspec.structs.replace(new_run(1, key="once", digest=b"d"), labels={"n": "1"})
    again = msgspec.structs.replace(new_run(2, key="once", digest=b"d"), labels={"n": "2"})
    await insert(store, first)
    await insert(store, again)
    assert await labels_of(store, 1) == {"n": "1"}
    assert await with_label(store, "n", "2") == []


async def test_with_a_run_its_labels_are_deleted(store: Store) -> None:
    await start(store, 1, customer="acme")
    await start(store, 2, customer="acme")
    await write(store, transition(1, status="COMPLETED", finished_at=NOW))
    async with store.transaction() as tx:
        assert await tx.runs.delete_finished(Instant(NOW + 1), 10) == 1
    async with store.transaction() as tx:
        rows = [row async for batch in tx.transfer.dump(RUN_LABELS) for row in batch]
    assert [tuple(row) for row in rows] == [(run_id(2), "customer", "acme")]
