"""Ids: of the right form, in the order of their making, and derived where they must be."""

from __future__ import annotations

from uuid import UUID

from trunkline.id_generation import new_id
from trunkline.ids import RunId, child_run_id, made_at, task_id


def test_an_id_is_a_uuid_of_version_7() -> None:
    found = UUID(new_id())
    assert (found.version, found.variant, str(found)) == (
        7,
        UUID(int=0x8000 << 48).variant,
        str(found).lower(),
    )


def test_ids_begin_with_the_time_so_that_later_ones_sort_later() -> None:
    earlier = new_id()
    while new_id()[:13] == earlier[:13]:
        pass  # the same millisecond
    assert new_id() > earlier


def test_ids_of_one_process_sort_as_they_were_made_within_a_millisecond_too() -> None:
    ids = [new_id() for _ in range(10_000)]
    assert len({id_[:13] for id_ in ids}) < len(ids)
    assert ids == sorted(set(ids))
    assert {(UUID(id_).version, UUID(id_).variant) for id_ in ids} == {(7, UUID(int=0x8000 << 48).variant)}


def test_only_an_answered_failure_or_a_reply_makes_another_task_id() -> None:
    run = RunId("r")
    assert task_id(run, "s", 0) == task_id(run, "s", 0) == "r/s/0"
    assert (
        len({task_id(run, "s", 0), task_id(run, "s", 1), task_id(run, "s", 0, 1), task_id(run, "s", 1, 1)})
        == 4
    )


def test_a_child_run_has_an_id_of_its_own_for_each_step_and_attempt() -> None:
    parent = RunId(new_id())
    child = child_run_id(parent, "call", 1)
    assert child == child_run_id(parent, "call", 1)
    found = UUID(child)
    assert (found.version, found.variant) == (7, UUID(int=0x8000 << 48).variant)
    assert made_at(child) == made_at(parent)
    others = {
        child_run_id(parent, "call", 2),
        child_run_id(parent, "other", 1),
        child_run_id(child, "call", 1),
    }
    assert len({child, parent, *others}) == 5
