"""What every store promises about listed tasks, and about comments on them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.contract.samples import NOW, insert, new_run, run_id, transition, write
from tests.contract.stores.test_waiting_steps import busy

from trunkline.clock import Instant
from trunkline.machine.state import HumanTask, StepState, WaitingFor
from trunkline.stores.base import Store, WaitingStep
from trunkline.stores.port.human_tasks import HumanTaskKey, ListedTask, ListedTaskFilter, TaskComment

pytestmark = pytest.mark.anyio

KEY = HumanTaskKey(run_id(1), "a", 1, 0)


def task(name: str, *, since: int, due: int | None = None) -> StepState:
    waiting = WaitingFor(
        kind="person",
        text="T",
        since=Instant(since),
        human_task=HumanTask(title="T", due=None if due is None else Instant(due)),
    )
    return StepState(name=name, status="WAITING", attempts=1, waiting_for=waiting)


def listed(number: int, step: str, *people: str, since: int, due: int | None = None) -> ListedTask:
    return ListedTask(
        run_id=run_id(number),
        step=step,
        people=people,
        since=Instant(since),
        due=None if due is None else Instant(due),
    )


async def put(store: Store, *tasks: ListedTask) -> None:
    """The steps wait, and the tasks are listed."""
    runs: dict[int, list[StepState]] = {}
    for each in tasks:
        runs.setdefault(int(each.run_id[-12:]), []).append(task(each.step, since=each.since, due=each.due))
    for number, steps in runs.items():
        await insert(store, new_run(number))
        assert await write(store, transition(number, steps=steps)) == set()
    async with store.transaction() as tx:
        await tx.human_tasks.list(tasks)


def places(steps: Sequence[WaitingStep]) -> list[tuple[int, str]]:
    return [(int(step.place.run_id[-12:]), step.place.step) for step in steps]


async def found(
    store: Store, *people: str, overdue_at: int | None = None, limit: int = 9
) -> list[tuple[int, str]]:
    where = ListedTaskFilter(
        people=people or None, overdue_at=None if overdue_at is None else Instant(overdue_at)
    )
    return places(await store.human_tasks.page(where, limit=limit))


async def test_each_person_finds_their_own_tasks_oldest_first(store: Store) -> None:
    await put(
        store,
        listed(1, "a", "ada", "support", since=7),
        listed(1, "b", "bob", since=3),
        listed(2, "a", "support", since=5),
    )
    assert await found(store, "ada") == [(1, "a")]
    assert await found(store, "support") == [(2, "a"), (1, "a")]
    assert await found(store, "bob", "support", "ada") == [(1, "b"), (2, "a"), (1, "a")]
    assert await found(store, "cleo") == []


async def test_pages_go_on_where_the_last_one_ended_for_several_names(store: Store) -> None:
    await put(
        store, *(listed(number, "a", "ada", "support", since=1 + number // 2) for number in range(1, 6))
    )
    where, seen = ListedTaskFilter(people=("ada", "support")), list[WaitingStep]()
    while page := await store.human_tasks.page(where, limit=2, after=seen[-1].place if seen else None):
        seen += page
    assert places(seen) == [(number, "a") for number in range(1, 6)]


async def test_overdue_tasks_come_in_the_order_in_which_they_became_it(store: Store) -> None:
    await put(
        store,
        listed(1, "a", "ada", "bob", since=1, due=9),
        listed(2, "a", since=2, due=5),
        listed(3, "a", "bob", since=3, due=20),
        listed(4, "a", "ada", since=4),
    )
    assert await found(store, overdue_at=10) == [(2, "a"), (1, "a")]
    assert await found(store, "ada", "bob", overdue_at=30) == [(1, "a"), (3, "a")]
    assert await found(store, overdue_at=9) == [(2, "a")]
    first = await store.human_tasks.page(ListedTaskFilter(overdue_at=Instant(30)), limit=2)
    place = first[-1].place._replace(since=Instant(9))
    rest = await store.human_tasks.page(ListedTaskFilter(overdue_at=Instant(30)), limit=2, after=place)
    assert places(rest) == [(3, "a")]


async def test_a_task_that_is_listed_again_is_no_longer_where_it_was(store: Store) -> None:
    await put(store, listed(1, "a", "ada", since=1))
    async with store.transaction() as tx:
        await tx.human_tasks.list([listed(1, "a", "bob", since=1, due=5)])
    assert (await found(store, "ada"), await found(store, "bob")) == ([], [(1, "a")])
    assert await found(store, overdue_at=9) == [(1, "a")]
    async with store.transaction() as tx:
        await tx.human_tasks.unlist([(run_id(1), "a"), (run_id(1), "b")])
    assert (await found(store, "bob"), await found(store, overdue_at=9)) == ([], [])


async def test_kind_and_workflow_are_conditions_too(store: Store) -> None:
    await put(store, listed(1, "a", "ada", since=1, due=3))
    for where, number in (
        (ListedTaskFilter(people=("ada",), kind="person", workflow="w"), 1),
        (ListedTaskFilter(people=("ada",), kind="input"), 0),
        (ListedTaskFilter(overdue_at=Instant(9), workflow="w"), 1),
        (ListedTaskFilter(overdue_at=Instant(9), workflow="other", kind="person"), 0),
    ):
        assert len(await store.human_tasks.page(where, limit=9)) == number


async def test_a_step_that_waits_no_longer_or_for_something_else_is_not_found(store: Store) -> None:
    await put(store, listed(1, "a", "ada", since=1), listed(2, "a", "ada", since=2))
    await write(store, transition(1, expected=1, steps=[busy("a", "COMPLETED")]))
    await write(store, transition(2, expected=1, steps=[task("a", since=7)]))
    assert await found(store, "ada") == []


def comment(text: str, by: str | None = "ada") -> TaskComment:
    return TaskComment(at=NOW, by=by, text=text)


async def add(store: Store, *comments: TaskComment, key: HumanTaskKey = KEY, most: int = 9) -> list[bool]:
    async with store.transaction() as tx:
        return [await tx.human_tasks.comment(key, each, most=most) for each in comments]


async def test_comments_come_back_in_the_order_in_which_they_were_written(store: Store) -> None:
    await insert(store, new_run(1))
    assert await add(store, comment("One"), comment("Tw\u0000o", by=None)) == [True, True]
    assert await add(store, comment("Other"), key=KEY._replace(replies=1)) == [True]
    assert await store.human_tasks.comments(KEY) == [comment("One"), comment("Tw\u0000o", by=None)]
    assert await store.human_tasks.comments(KEY._replace(step="b")) == []


async def test_a_task_has_a_limited_number_of_comments_and_needs_its_run(store: Store) -> None:
    await insert(store, new_run(1))
    assert await add(store, *map(comment, "abc"), most=2) == [True, True, False]
    assert await add(store, comment("a"), key=KEY._replace(run_id=run_id(2))) == [False]
    assert [each.text for each in await store.human_tasks.comments(KEY)] == ["a", "b"]


async def test_what_is_written_about_a_run_is_deleted_with_it(store: Store) -> None:
    await put(store, listed(1, "a", "ada", since=1))
    await add(store, comment("One"))
    ended = transition(1, expected=1, status="COMPLETED", steps=[busy("a", "COMPLETED")], finished_at=NOW)
    await write(store, ended)
    async with store.transaction() as tx:
        assert await tx.runs.delete_finished(Instant(NOW + 1), 9) == 1
    assert (await found(store, "ada"), await store.human_tasks.comments(KEY)) == ([], [])
