"""What every store promises about the tasks of A2A callers, and the messages that follow the first one."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.contract.samples import NOW, insert, new_run, run_id, transition, write

from trunkline.clock import after
from trunkline.jsontypes import encode
from trunkline.machine.state import RunStatus, TaskState
from trunkline.messages import CallerMessage
from trunkline.stores.base import FollowUp, NewRun, Store, TaskFilter, TaskPlace
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

WHERE = TaskFilter(publication="workflows/w", caller="key")
MESSAGE = CallerMessage(
    message_id="m \u0000",
    context_id="c",
    parts=[{"text": "ü"}],
    publication="workflows/w",
    caller="key",
)


def started(number: int, **fields: str) -> NewRun:
    message = msgspec.structs.replace(MESSAGE, **fields)
    return msgspec.structs.replace(new_run(number), message=encode(message), contexts={"A": f"a-{number}"})


async def numbers(store: Store, where: TaskFilter = WHERE, **page: TaskPlace) -> list[int]:
    return [int(task.run_id[-12:]) for task in await store.published_tasks.page(where, limit=10, **page)]


async def test_a_message_and_its_conversations_come_back_with_the_run(store: Store) -> None:
    await insert(store, started(1), new_run(2))
    found = await store.runs.get(run_id(1))
    assert found is not None
    assert (found[0].message, found[0].contexts) == (encode(MESSAGE), {"A": "a-1"})
    async with store.transaction() as tx:
        loaded = await tx.runs.load([run_id(1)])
    assert [(record.message, record.contexts) for record, _ in loaded] == [(encode(MESSAGE), {"A": "a-1"})]
    listed = await store.runs.page(limit=10, payloads=False)
    assert [record.message for record in listed] == [None, None]
    task = await store.published_tasks.get(run_id(1))
    assert task is not None
    assert (task.publication, task.caller, task.context_id, task.state) == (
        "workflows/w",
        "key",
        "c",
        "submitted",
    )
    assert await store.published_tasks.get(run_id(2)) is None


@pytest.mark.parametrize(
    ("status", "state"), [("RUNNING", "working"), ("COMPLETED", "completed"), ("CANCELLED", "canceled")]
)
async def test_a_task_follows_its_run(
    store: Store, clock: FakeClock, status: RunStatus, state: TaskState
) -> None:
    await insert(store, started(1))
    change = transition(1, status=status)
    change.state.message = encode(MESSAGE)
    clock.advance(timedelta(seconds=5))
    await write(store, change)
    task = await store.published_tasks.get(run_id(1))
    assert task is not None
    assert (task.state, task.updated_at) == (state, clock.now())


async def test_a_decision_that_lost_leaves_the_task_as_it_is(store: Store) -> None:
    await insert(store, started(1))
    late = transition(1, expected=7, status="COMPLETED")
    late.state.message = encode(MESSAGE)
    assert await write(store, late) == {run_id(1)}
    task = await store.published_tasks.get(run_id(1))
    assert task is not None
    assert task.state == "submitted"


async def test_tasks_are_listed_last_changed_first_and_only_those_asked_for(
    store: Store, clock: FakeClock
) -> None:
    await insert(
        store,
        started(1),
        started(2, context_id="d"),
        started(3),
        started(4, caller="other"),
        started(5, publication="agents/w"),
    )
    change = transition(1, status="COMPLETED")
    change.state.message = encode(MESSAGE)
    clock.advance(timedelta(seconds=5))
    await write(store, change)
    assert await numbers(store) == [1, 3, 2]
    assert await store.published_tasks.count(WHERE, most=10) == 3
    assert await store.published_tasks.count(WHERE, most=2) == 2
    assert await numbers(store, before=TaskPlace(clock.now(), run_id(1))) == [3, 2]
    assert await numbers(store, before=TaskPlace(NOW, run_id(3))) == [2]
    replace = msgspec.structs.replace
    assert await numbers(store, replace(WHERE, context_id="d")) == [2]
    assert await numbers(store, replace(WHERE, state="completed")) == [1]
    assert await numbers(store, replace(WHERE, since=after(NOW, timedelta(seconds=1)))) == [1]
    assert await numbers(store, replace(WHERE, caller=None)) == [1, 4, 3, 2]


async def test_a_follow_up_is_kept_once_and_deleted_with_its_run(store: Store, clock: FakeClock) -> None:
    await insert(store, started(1))
    second = FollowUp(
        run_id=run_id(1), key="reply/a/1", at=after(NOW, timedelta(1)), question=b"q", answer=b"b"
    )
    first = FollowUp(run_id=run_id(1), key="reply/a/0", at=NOW, question=b"null", answer=b"\x00")
    async with store.transaction() as tx:
        await tx.published_tasks.add_follow_ups([second, first])
        await tx.published_tasks.add_follow_ups([msgspec.structs.replace(first, answer=b"again")])
        await tx.published_tasks.add_follow_ups([])
    assert await store.published_tasks.follow_ups(run_id(1)) == [first, second]
    await write(store, transition(1, status="COMPLETED", finished_at=NOW))
    async with store.transaction() as tx:
        assert await tx.runs.delete_finished(after(NOW, timedelta(1)), limit=10) == 1
    assert await store.published_tasks.follow_ups(run_id(1)) == []
    assert await store.published_tasks.get(run_id(1)) is None
    assert clock.now() == NOW
