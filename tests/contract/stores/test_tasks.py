"""What every store promises about tasks: who may call an agent, and whose answer counts."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.contract.backends import OpenStore
from tests.contract.bridges import (
    DEAD,
    LATER,
    ME,
    agents_of,
    answer,
    claim,
    done,
    hold,
    numbers,
    reclaim,
    register,
    stop,
    taken,
)
from tests.contract.samples import NOW, insert, key_of, new_run, queue, queued, run_id, task

from trunkline.clock import after
from trunkline.messages import AgentTask
from trunkline.stores.base import ReclaimedTasks, Store, TaskAnswer, TaskKey
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

# --- claiming


async def test_a_task_is_claimed_once_and_comes_back_as_it_was(store: Store) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store)
    assert (claimed.key, claimed.task) == (TaskKey(task(1).task_id, 1), task(1))
    assert (claimed.epoch, claimed.remote_task_id, claimed.deadline, claimed.polls) == (1, None, None, 0)
    assert await claim(store) == []


async def test_a_task_that_is_known_stays_as_it_is(store: Store) -> None:
    await queue(store, task(1), task(1))
    (claimed,) = await claim(store)
    await queue(store, task(1))
    assert await claim(store) == []
    await answer(store, done(claimed))
    await queue(store, task(1, agent="another"))
    assert await claim(store) == []


async def test_another_attempt_at_a_task_is_another_task(store: Store) -> None:
    await queue(store, task(1), task(1, attempt=2))
    assert {each.key.attempt for each in await claim(store)} == {1, 2}


async def test_a_claim_that_is_rolled_back_is_none(store: Store) -> None:
    await queue(store, task(1))
    await hold(store, ME)

    async def fail() -> None:
        async with store.transaction() as tx:
            assert len(await tx.tasks.claim(ME, 10)) == 1
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    assert [each.epoch for each in await claim(store)] == [1]


async def test_no_more_tasks_are_claimed_than_asked_for_and_the_oldest_first(store: Store) -> None:
    await queue(store, *(task(number) for number in range(1, 6)))
    assert numbers(await claim(store, limit=2)) == {run_id(1), run_id(2)}
    assert numbers(await claim(store, limit=2)) == {run_id(3), run_id(4)}


async def test_an_agent_is_called_by_no_more_tasks_at_a_time_than_it_allows(store: Store) -> None:
    await register(store, "A", 2)
    await register(store, "B", 1)
    await queue(store, *(task(number, agent="AB"[number % 2]) for number in range(8)))
    claimed = await claim(store)
    assert agents_of(claimed) == {"A": 2, "B": 1}
    assert await claim(store) == []
    await answer(store, *(done(each) for each in claimed if each.task.agent == "A"))
    assert agents_of(await claim(store)) == {"A": 2}


async def test_tasks_that_are_made_and_claimed_in_one_transaction_keep_to_the_slots_too(store: Store) -> None:
    await register(store, "A", 2)
    await insert(store, *(new_run(number) for number in range(1, 6)))
    await hold(store, ME)
    claims: list[int] = []
    for numbers_ in ((1, 2, 3), (4, 5)):
        async with store.transaction() as tx:
            await tx.tasks.put([queued(task(number)) for number in numbers_])
            claims.append(len(await tx.tasks.claim(ME, 100)))
    assert claims == [2, 0]


async def test_a_task_that_the_agent_has_taken_keeps_its_slot_until_it_ends(
    store: Store, clock: FakeClock
) -> None:
    await register(store, "A", 1)
    await queue(store, task(1), task(2))
    (first,) = await claim(store)
    await answer(store, taken(first))
    assert await claim(store) == []
    clock.advance(timedelta(seconds=30))
    (asked,) = await claim(store)
    assert asked.key == first.key
    assert await claim(store) == []
    await answer(store, done(asked))
    assert numbers(await claim(store)) == {run_id(2)}


async def test_tasks_for_an_agent_that_is_not_registered_are_claimed_to_fail(store: Store) -> None:
    await queue(store, task(1, agent="nobody"), task(2, agent="nobody"))
    assert len(await claim(store)) == 2


async def test_an_agent_whose_limit_was_lowered_gets_nothing_until_it_is_below(store: Store) -> None:
    await register(store, "A", 3)
    await queue(store, *(task(number) for number in range(5)))
    claimed = await claim(store)
    agent = await store.agents.get("A")
    assert agent is not None
    async with store.transaction() as tx:
        await tx.agents.update(msgspec.structs.replace(agent, max_concurrency=1, version=2), 1)
    await answer(store, done(claimed[0]))
    assert await claim(store) == []
    await answer(store, *map(done, claimed[1:]))
    assert len(await claim(store)) == 1


async def test_a_long_queue_for_one_agent_does_not_keep_the_others_waiting(store: Store) -> None:
    await queue(store, *(task(number, agent="A") for number in range(20)))
    await queue(store, *(task(number, agent="B", step="b") for number in range(20)))
    await queue(store, task(1, agent="C", step="c"))
    assert agents_of(await claim(store, limit=9)) == {"A": 4, "B": 4, "C": 1}


async def test_a_place_that_one_agent_cannot_use_goes_to_the_others(store: Store) -> None:
    await register(store, "A", 1)
    await queue(store, *(task(number, agent="A") for number in range(9)))
    await queue(store, *(task(number, agent="B", step="b") for number in range(9)))
    await queue(store, task(1, agent="C", step="c"))
    assert agents_of(await claim(store, limit=8)) == {"A": 1, "B": 6, "C": 1}


async def test_with_too_few_places_for_all_the_agent_that_has_waited_longest_comes_first(
    store: Store,
) -> None:
    await queue(store, task(1, agent="Z"), task(2, agent="Z"), task(3, agent="A"), task(4, agent="M"))
    assert [agents_of(await claim(store, limit=1)) for _ in range(4)] == [
        {"Z": 1},
        {"Z": 1},
        {"A": 1},
        {"M": 1},
    ]


# --- answers


async def test_an_answer_ends_a_task(store: Store) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store)
    assert await answer(store, done(claimed)) == set()
    backlog = await store.backlog.count()
    assert (backlog.queued_tasks, backlog.claimed_tasks, backlog.remote_tasks) == (0, 0, 0)
    assert (await reclaim(store, "the next process")).in_doubt == []
    assert await claim(store, "the next process") == []


@pytest.mark.parametrize(
    ("epoch_behind", "owner"),
    [(1, ME), (0, DEAD), (-1, ME)],
    ids=["old epoch", "other owner", "future epoch"],
)
async def test_the_answer_of_a_zombie_writes_nothing(store: Store, epoch_behind: int, owner: str) -> None:
    await queue(store, task(1), task(2))
    claimed = {each.task.run_id: each for each in await claim(store)}
    ours, stale = claimed[run_id(1)], claimed[run_id(2)]
    late = msgspec.structs.replace(done(stale), epoch=stale.epoch - epoch_behind)
    if owner == ME:
        assert await answer(store, done(ours), late) == {stale.key}
    else:
        assert await answer(store, late, owner=owner) == {stale.key}
    assert (await store.backlog.count()).claimed_tasks == (1 if owner == ME else 2)
    assert await answer(store, done(stale)) == set()


async def test_a_second_answer_to_the_same_claim_writes_nothing(store: Store) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store)
    await answer(store, done(claimed))
    assert await answer(store, taken(claimed)) == {claimed.key}
    assert (await store.backlog.count()).remote_tasks == 0


async def test_an_answer_to_an_unknown_task_writes_nothing(store: Store) -> None:
    unknown = TaskAnswer(key=TaskKey("x/y/0", 1), epoch=1)
    assert await answer(store, unknown) == {unknown.key}


async def test_a_task_that_the_agent_has_taken_is_asked_for_when_it_is_due(
    store: Store, clock: FakeClock
) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store)
    await answer(store, taken(claimed))
    assert await claim(store) == []
    async with store.transaction() as tx:
        assert await tx.tasks.next_poll() == LATER
    clock.advance(timedelta(seconds=30))
    (asked,) = await claim(store)
    assert (asked.key, asked.remote_task_id, asked.polls) == (claimed.key, "remote-1", 1)
    assert asked.deadline == after(NOW, timedelta(minutes=5))
    assert asked.epoch == claimed.epoch + 1
    async with store.transaction() as tx:
        assert await tx.tasks.next_poll() is None


async def test_the_agents_own_task_id_is_kept_from_question_to_question(
    store: Store, clock: FakeClock
) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store)
    await answer(store, taken(claimed))
    clock.advance(timedelta(seconds=30))
    (asked,) = await claim(store)
    again = msgspec.structs.replace(taken(asked, after(LATER, timedelta(seconds=30)), 2), remote_task_id=None)
    await answer(store, again)
    clock.advance(timedelta(seconds=30))
    (asked,) = await claim(store)
    assert (asked.remote_task_id, asked.polls) == ("remote-1", 2)


# --- after a crash


async def test_what_a_dead_process_had_claimed_is_claimed_again_under_a_new_epoch(store: Store) -> None:
    await queue(store, task(1))
    (lost,) = await claim(store, DEAD)
    assert await reclaim(store) == ReclaimedTasks(in_doubt=[], stopped=[])
    (claimed,) = await claim(store)
    assert (claimed.key, claimed.task, claimed.epoch) == (lost.key, lost.task, lost.epoch + 1)
    assert await answer(store, done(lost), owner=DEAD) == {lost.key}
    assert await answer(store, done(claimed)) == set()


async def test_what_is_our_own_is_not_taken_away_from_us(store: Store) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store)
    await reclaim(store)
    assert await claim(store) == []
    assert await answer(store, done(claimed)) == set()


async def test_an_at_most_once_task_of_a_dead_process_is_in_doubt_and_never_called_again(
    store: Store,
) -> None:
    await queue(store, task(1, at_most_once=True), task(2))
    claimed = {each.task.run_id: each for each in await claim(store, DEAD)}
    reclaimed = await reclaim(store)
    assert [each.key for each in reclaimed.in_doubt] == [claimed[run_id(1)].key]
    assert reclaimed.in_doubt[0].task == task(1, at_most_once=True)
    assert numbers(await claim(store)) == {run_id(2)}
    assert (await reclaim(store, "the next process")).in_doubt == []


async def test_an_at_most_once_task_that_was_only_queued_is_not_in_doubt(store: Store) -> None:
    await queue(store, task(1, at_most_once=True))
    assert (await reclaim(store)).in_doubt == []
    assert len(await claim(store)) == 1


@pytest.mark.parametrize("at_most_once", [False, True])
async def test_what_the_agent_has_taken_goes_on_being_asked_for(
    store: Store, clock: FakeClock, at_most_once: bool
) -> None:
    await queue(store, task(1, at_most_once=at_most_once))
    (claimed,) = await claim(store, DEAD)
    await answer(store, taken(claimed), owner=DEAD)
    clock.advance(timedelta(seconds=30))
    await claim(store, DEAD)
    assert await reclaim(store) == ReclaimedTasks(in_doubt=[], stopped=[])
    (asked,) = await claim(store)
    assert (asked.remote_task_id, asked.polls) == ("remote-1", 1)


@pytest.mark.parametrize("at_most_once", [False, True])
async def test_a_task_whose_stream_is_open_when_its_process_dies_is_asked_for(
    store: Store, at_most_once: bool
) -> None:
    await queue(store, task(1, at_most_once=at_most_once))
    (claimed,) = await claim(store, DEAD)
    heard = TaskAnswer(
        key=claimed.key, epoch=claimed.epoch, holds=True, remote_task_id="remote-1", context_id="c-1"
    )
    await answer(store, heard, owner=DEAD)
    assert await reclaim(store) == ReclaimedTasks(in_doubt=[], stopped=[])
    (asked,) = await claim(store)
    assert (asked.key, asked.remote_task_id, asked.context_id) == (claimed.key, "remote-1", "c-1")


async def test_what_is_asked_for_later_waits_over_a_restart(store: Store, clock: FakeClock) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store, DEAD)
    await answer(store, taken(claimed), owner=DEAD)
    await reclaim(store)
    assert await claim(store) == []
    clock.advance(timedelta(seconds=30))
    assert [each.remote_task_id for each in await claim(store)] == ["remote-1"]


# --- stopping


async def test_a_queued_task_that_is_stopped_is_never_called(store: Store) -> None:
    await queue(store, task(1))
    (stopped,) = await stop(store, key_of(task(1)))
    assert (stopped.was, stopped.claim.task) == ("queued", task(1))
    assert await claim(store) == []
    assert (await store.backlog.count()).queued_tasks == 0


async def test_a_claimed_task_that_is_stopped_stays_with_who_has_it(store: Store) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store)
    (stopped,) = await stop(store, claimed.key)
    assert (stopped.was, stopped.claim) == ("claimed", claimed)
    assert await answer(store, done(claimed)) == set()


async def test_a_task_that_the_agent_has_taken_is_claimed_to_tell_it(store: Store, clock: FakeClock) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store, DEAD)
    await answer(store, taken(claimed), owner=DEAD)
    (stopped,) = await stop(store, claimed.key)
    assert (stopped.was, stopped.claim.remote_task_id) == ("remote", "remote-1")
    assert stopped.claim.epoch == claimed.epoch + 1
    clock.advance(timedelta(minutes=1))
    assert await claim(store) == []
    assert await answer(store, done(stopped.claim)) == set()


async def test_a_task_that_is_done_says_so(store: Store) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store)
    await answer(store, msgspec.structs.replace(done(claimed), remote_task_id="asks"))
    (stopped,) = await stop(store, claimed.key)
    assert (stopped.was, stopped.claim.remote_task_id) == ("done", "asks")


async def test_a_task_that_is_done_keeps_what_its_answer_says(store: Store) -> None:
    await queue(store, task(1), task(2))
    claimed = await claim(store)
    assert [each.payload_bytes for each in claimed] == [len(queued(each.task).payload) for each in claimed]
    short = msgspec.structs.replace(claimed[0].task, input_data=None)
    with_payload = msgspec.structs.replace(done(claimed[0]), payload=queued(short).payload)
    await answer(store, with_payload, done(claimed[1]))
    stopped = await stop(store, *(each.key for each in claimed))
    assert {each.claim.key: each.claim.task for each in stopped} == {
        claimed[0].key: short,
        claimed[1].key: claimed[1].task,
    }


async def test_a_large_task_is_written_and_taken_like_others(store: Store, clock: FakeClock) -> None:
    large = msgspec.structs.replace(task(1), input_data="x" * 3_000_000)
    await queue(store, large, msgspec.structs.replace(task(2), input_data="x" * 3_000_000))
    (claimed,) = await claim(store, limit=1)
    asked = msgspec.structs.replace(taken(claimed), task_bytes=claimed.payload_bytes)
    assert await answer(store, asked) == set()
    clock.advance(timedelta(minutes=1))
    again, other = await claim(store)
    assert (again.task, other.key) == (large, key_of(task(2)))
    ended = msgspec.structs.replace(done(again), task_bytes=again.payload_bytes)
    assert await answer(store, ended) == set()
    assert await answer(store, ended) == {claimed.key}


async def test_a_stop_that_comes_before_its_task_leaves_a_tombstone(store: Store) -> None:
    await insert(store, new_run(1))
    assert await stop(store, key_of(task(1))) == []
    await queue(store, task(1), task(1, attempt=2))
    assert [each.key.attempt for each in await claim(store)] == [2]
    assert await stop(store, key_of(task(1))) == []


async def test_stopping_many_tells_of_each(store: Store) -> None:
    tasks = [task(number) for number in range(4)]
    await queue(store, *tasks[:3])
    (claimed,) = await claim(store, limit=1)
    stopped = await stop(store, *map(key_of, tasks))
    assert {each.claim.key: each.was for each in stopped} == {
        key_of(tasks[0]): "claimed",
        key_of(tasks[1]): "queued",
        key_of(tasks[2]): "queued",
    }
    assert claimed.key == key_of(tasks[0])


async def test_that_a_task_is_to_end_is_remembered_over_a_crash(store: Store) -> None:
    await queue(store, task(1), task(2, at_most_once=True), task(3))
    for each in await claim(store, DEAD):
        if each.task.run_id != run_id(3):
            await stop(store, each.key, owner=DEAD)
    reclaimed = await reclaim(store)
    assert (numbers(reclaimed.stopped), reclaimed.in_doubt) == ({run_id(1), run_id(2)}, [])
    assert numbers(await claim(store)) == {run_id(3)}


async def test_an_agent_without_its_cancel_request_gets_it_after_a_crash(store: Store) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store, DEAD)
    await answer(store, taken(claimed), owner=DEAD)
    await stop(store, claimed.key, owner=DEAD)
    (stopped,) = (await reclaim(store)).stopped
    assert (stopped.key, stopped.remote_task_id) == (claimed.key, "remote-1")
    assert await claim(store) == []
    assert await answer(store, done(stopped)) == set()


async def test_tasks_of_different_steps_do_not_meet(store: Store) -> None:
    tasks: list[AgentTask] = [task(1, step=step) for step in ("a", "ab", "a_b")]
    await queue(store, *tasks)
    await stop(store, key_of(tasks[0]))
    assert {each.task.step for each in await claim(store)} == {"ab", "a_b"}


async def test_a_task_that_was_claimed_to_be_asked_in_a_failed_transaction_is_still_due(
    store: Store, clock: FakeClock
) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store)
    await answer(store, taken(claimed))
    clock.advance(timedelta(seconds=30))
    await hold(store, ME)

    async def fail() -> None:
        async with store.transaction() as tx:
            assert len(await tx.tasks.claim(ME, 10)) == 1
            assert await tx.tasks.next_poll() is None
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    async with store.transaction() as tx:
        assert await tx.tasks.next_poll() == LATER
    assert [each.remote_task_id for each in await claim(store)] == ["remote-1"]


async def test_of_several_tasks_to_be_asked_for_the_first_decides_when(
    store: Store, clock: FakeClock
) -> None:
    await queue(store, task(1), task(2), task(3))
    claimed = await claim(store)
    for place, each in enumerate(claimed):
        await answer(store, taken(each, after(NOW, timedelta(seconds=30 - 10 * place))))
    async with store.transaction() as tx:
        assert await tx.tasks.next_poll() == after(NOW, timedelta(seconds=10))
    clock.advance(timedelta(seconds=20))
    assert {each.key for each in await claim(store)} == {each.key for each in claimed[1:]}
    async with store.transaction() as tx:
        assert await tx.tasks.next_poll() == after(NOW, timedelta(seconds=30))


async def test_what_is_to_be_asked_for_is_known_after_a_restart(
    open_store: OpenStore, clock: FakeClock
) -> None:
    async with open_store() as store:
        await queue(store, task(1), task(2))
        first, second = await claim(store, DEAD)
        await answer(store, taken(first), owner=DEAD)
    async with open_store() as store:
        await reclaim(store)
        assert [each.key for each in await claim(store)] == [second.key]
        clock.advance(timedelta(seconds=30))
        assert [each.key for each in await claim(store)] == [first.key]
