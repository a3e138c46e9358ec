"""What every store promises about triggers and their firings."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

import msgspec
import pytest
from tests.contract.samples import NOW, id_of, insert, new_run, run_id, transition, write

from trunkline.clock import Instant, after
from trunkline.errors import AlreadyExists
from trunkline.messages import StepError
from trunkline.stores.base import Store
from trunkline.stores.port.automation.received_events import NewEvent, StoredEvent
from trunkline.stores.port.automation.triggers import EndedRun, Firing, FiringOutcome, RunEnd, TriggerRecord
from trunkline.stores.port.transfer import TABLES

pytestmark = pytest.mark.anyio

LATER_BY = timedelta(hours=1)
LATER = after(NOW, LATER_BY)


def trigger(name: str, *, due: Instant | None = None, awaits_runs: bool = False) -> TriggerRecord:
    return TriggerRecord(
        id=id_of(name),
        name=name,
        definition=b'{"name":"\x00"}',
        version=1,
        created_at=NOW,
        updated_at=NOW,
        scheduled_at=due,
        due=due,
        awaits_runs=awaits_runs,
    )


def firing(number: int, outcome: FiringOutcome = "started", *, of: str = "a", at: Instant = NOW) -> Firing:
    return Firing(
        id=run_id(number),
        trigger_id=id_of(of),
        at=at,
        outcome=outcome,
        scheduled_at=NOW if number % 2 else None,
        run_id=run_id(number) if outcome == "started" else None,
        reason=None if outcome == "started" else "because\x00",
    )


async def add(store: Store, *triggers: TriggerRecord, firings: Sequence[Firing] = ()) -> None:
    async with store.transaction() as tx:
        for each in triggers:
            await tx.triggers.insert(each)
        await tx.triggers.put_firings(firings)


async def claimed(store: Store, limit: int = 10) -> list[str]:
    async with store.transaction() as tx:
        return [each.name for each in await tx.triggers.claim_due(limit)]


async def test_a_trigger_is_found_by_its_name_and_listed_by_it(store: Store) -> None:
    names = ["A", "a", "a-b", "b_c"]
    await add(store, *(trigger(name) for name in reversed(names)))
    assert await store.triggers.get("a") == trigger("a")
    assert await store.triggers.get("ab") is None
    assert await store.triggers.by_id(id_of("a")) == trigger("a")
    assert await store.triggers.by_id(id_of("ab")) is None
    assert await store.triggers.by_id("a") is None
    assert [each.name for each in await store.triggers.page(limit=2)] == names[:2]
    assert [each.name for each in await store.triggers.page(limit=9, after="a")] == names[2:]


async def test_a_name_is_taken_once(store: Store) -> None:
    await add(store, trigger("a"))
    with pytest.raises(AlreadyExists, match="'a' already exists"):
        await add(store, msgspec.structs.replace(trigger("a"), id=id_of("other")))


async def test_a_change_keeps_name_and_creation(store: Store) -> None:
    await add(store, trigger("a", due=NOW), trigger("b"))
    changed = msgspec.structs.replace(
        trigger("a"),
        definition=b"{}",
        version=2,
        updated_at=LATER,
        scheduled_at=LATER,
        due=None,
        awaits_runs=True,
    )
    async with store.transaction() as tx:
        assert await tx.triggers.get("a") == trigger("a", due=NOW)
        await tx.triggers.update([changed])
        await tx.triggers.update([])
        assert await tx.triggers.get("a") == changed
    assert await store.triggers.get("a") == changed
    assert await store.triggers.get("b") == trigger("b")


async def test_those_that_are_due_are_claimed_the_longest_due_first(store: Store) -> None:
    earlier = after(NOW, -timedelta(seconds=1))
    await add(
        store,
        trigger("now", due=NOW),
        trigger("later", due=LATER),
        trigger("before", due=earlier),
        trigger("no"),
    )
    assert await claimed(store) == ["before", "now"]
    assert await claimed(store, limit=1) == ["before"]
    async with store.transaction() as tx:
        assert await tx.triggers.next_due() == earlier


async def test_without_triggers_nothing_is_due(store: Store) -> None:
    async with store.transaction() as tx:
        assert await tx.triggers.next_due() is None
    assert await claimed(store) == []


async def test_a_trigger_is_claimed_by_one_process_at_a_time(one: Store, two: Store) -> None:
    await add(one, trigger("a", due=NOW), trigger("b", due=NOW))
    async with one.transaction() as tx:
        assert len(await tx.triggers.claim_due(1)) == 1
        assert len(await claimed(two)) == 1
    assert await claimed(two) == ["a", "b"]


async def test_unfinished_runs_are_those_that_the_trigger_has_started(store: Store) -> None:
    runs = [msgspec.structs.replace(new_run(number), trigger="a") for number in (1, 2, 3)]
    await insert(store, *runs, msgspec.structs.replace(new_run(4), trigger="b"), new_run(5))
    await write(store, transition(1, status="COMPLETED", finished_at=NOW))
    async with store.transaction() as tx:
        found = await tx.triggers.unfinished_runs({"a", "b", "c"}, each=10)
        assert found == {"a": [run_id(2), run_id(3)], "b": [run_id(4)]}
        assert await tx.triggers.unfinished_runs({"a"}, each=1) == {"a": [run_id(2)]}
        assert await tx.triggers.unfinished_runs(set(), each=1) == {}


async def test_a_run_keeps_the_name_of_its_trigger(store: Store) -> None:
    await insert(store, msgspec.structs.replace(new_run(1), trigger="a"), new_run(2))
    first, second = await store.runs.get(run_id(1)), await store.runs.get(run_id(2))
    assert first is not None
    assert second is not None
    assert (first[0].trigger, second[0].trigger) == ("a", None)


async def test_the_end_of_a_run_makes_a_trigger_due_that_awaits_it(store: Store) -> None:
    await add(store, trigger("queue", due=LATER, awaits_runs=True), trigger("skip", due=LATER))
    async with store.transaction() as tx:
        assert await tx.triggers.runs_ended({"queue", "skip", "gone"})
        assert not await tx.triggers.runs_ended({"skip"})
    assert await claimed(store) == ["queue"]
    found = await store.triggers.get("queue")
    assert found is not None
    assert found.scheduled_at == LATER


async def test_a_trigger_is_left_alone_while_another_process_ends_its_run(one: Store, two: Store) -> None:
    # Otherwise a firing could be queued behind a run whose end has been reported already.
    await add(one, trigger("a", due=NOW, awaits_runs=True))
    async with one.transaction() as tx:
        await tx.triggers.runs_ended({"a"})
        assert await claimed(two) == []
    assert await claimed(two) == ["a"]


async def test_firings_are_listed_newest_first(store: Store) -> None:
    firings = [firing(1), firing(2, "skipped"), firing(3, "missed")]
    await add(store, trigger("a"), trigger("b"), firings=[*firings, firing(4, of="b")])
    assert await store.triggers.firings(id_of("a"), limit=10) == firings[::-1]
    assert await store.triggers.firings(id_of("a"), limit=1, before=firings[2].id) == [firings[1]]
    assert await store.triggers.last_firings([id_of("a"), id_of("b"), id_of("c")]) == {
        id_of("a"): firings[2],
        id_of("b"): firing(4, of="b"),
    }
    assert await store.triggers.firings(id_of("a"), limit=10, before="x") in ([], firings[::-1])


async def test_a_queued_firing_is_settled_in_its_place(store: Store) -> None:
    queued = [firing(1, "queued"), firing(2, "queued")]
    await add(store, trigger("a"), trigger("b"), firings=[*queued, firing(3), firing(4, "queued", of="b")])
    async with store.transaction() as tx:
        found = await tx.triggers.queued_firings({id_of("a"), id_of("c")}, each=10)
        assert found == {id_of("a"): queued}
        assert await tx.triggers.queued_firings({id_of("a")}, each=1) == {id_of("a"): queued[:1]}
        started = msgspec.structs.replace(
            queued[0], outcome="started", run_id=run_id(9), reason=None, at=LATER
        )
        await tx.triggers.put_firings([started])
        assert await tx.triggers.queued_firings({id_of("a")}, each=10) == {id_of("a"): queued[1:]}
    assert (await store.triggers.firings(id_of("a"), limit=10))[-1] == started


async def test_a_deleted_trigger_takes_its_firings_along(store: Store) -> None:
    await add(store, trigger("a"), trigger("b"), firings=[firing(1), firing(2, of="b")])
    async with store.transaction() as tx:
        assert await tx.triggers.delete("a")
        assert not await tx.triggers.delete("a")
    assert await store.triggers.firings(id_of("a"), limit=10) == []
    assert len(await store.triggers.firings(id_of("b"), limit=10)) == 1


async def test_old_firings_are_forgotten_unless_they_are_queued(store: Store) -> None:
    old = [firing(1), firing(2, "queued"), firing(3, "failed")]
    await add(store, trigger("a"), firings=[*old, firing(4, at=LATER)])
    async with store.transaction() as tx:
        assert await tx.triggers.forget_firings(LATER, 1) == 1
        assert await tx.triggers.forget_firings(LATER, 10) == 1
        assert await tx.triggers.forget_firings(LATER, 10) == 0
    left = await store.triggers.firings(id_of("a"), limit=10)
    assert [each.id for each in left] == [run_id(4), run_id(2)]


async def arrive(store: Store, *types: str) -> None:
    events = [
        NewEvent(id=f"{type_}\x00", source="s", type=type_, key=None, data=b'{"n":1}') for type_ in types
    ]
    async with store.transaction() as tx:
        await tx.received_events.put(events, 10)


async def take(store: Store, limit: int = 10) -> list[tuple[str, str]]:
    """The triggers that have something to take, each with the event or run."""
    async with store.transaction() as tx:
        return [(trigger.name, cause.id) for trigger, cause in await tx.triggers.take_pending(limit)]


async def test_an_event_fires_the_triggers_that_listen_to_its_type(store: Store) -> None:
    await add(store, trigger("a"), trigger("b"))
    async with store.transaction() as tx:
        await tx.triggers.set_topics(id_of("a"), ["event/x", "event/z\x00", "event/x"])
        await tx.triggers.set_topics(id_of("b"), ["event/x"])
        assert await tx.triggers.listeners(["event/x", "event/y"]) == 2
        assert await tx.triggers.listeners(["event/y"]) == 0
        assert not await tx.triggers.has_pending()
    await arrive(store, "x", "y", "z\x00")
    await arrive(store, "x")
    async with store.transaction() as tx:
        assert await tx.triggers.has_pending()
        taken = await tx.triggers.take_pending(1)
        event = taken[0].cause
        assert isinstance(event, StoredEvent)
        assert (taken[0].trigger, event.type, event.data) == (trigger(taken[0].trigger.name), "x", b'{"n":1}')
    rest = await take(store)
    assert sorted([(taken[0].trigger.name, event.id), *rest]) == [
        ("a", "x\x00"), ("a", "z\x00\x00"), ("b", "x\x00"),
    ]  # fmt: skip
    assert await take(store) == []


async def test_a_signal_fires_no_trigger(store: Store) -> None:
    await add(store, trigger("a"))
    await insert(store, new_run(1))
    signal = NewEvent(id="1", source="s", type="x", key=None, data=b"1", run_id=run_id(1))
    async with store.transaction() as tx:
        await tx.triggers.set_topics(id_of("a"), ["event/x"])
        await tx.received_events.put([signal], 10)
        assert not await tx.triggers.has_pending()


async def test_an_event_is_kept_until_the_trigger_has_taken_it(store: Store) -> None:
    await add(store, trigger("a"))
    async with store.transaction() as tx:
        await tx.triggers.set_topics(id_of("a"), ["event/x"])
    await arrive(store, "x", "y")
    async with store.transaction() as tx:
        assert await tx.received_events.delete(after(tx.now, LATER_BY), 10) == 1
    assert await take(store) == [("a", "x\x00")]
    async with store.transaction() as tx:
        assert await tx.received_events.delete(after(tx.now, LATER_BY), 10) == 1


async def test_the_end_of_a_run_fires_the_triggers_that_listen(store: Store) -> None:
    await add(store, trigger("a"), trigger("b"))
    await insert(store, *(msgspec.structs.replace(new_run(number), depth=2) for number in (1, 2, 3)))
    ends = [
        RunEnd(run_id(1), "run/FAILED/w"),
        RunEnd(run_id(2), "run/FAILED/v"),
        RunEnd(run_id(3), "run/COMPLETED/w"),
    ]
    async with store.transaction() as tx:
        assert not await tx.triggers.note_run_ends(ends)
        await tx.triggers.set_topics(id_of("a"), ["run/FAILED/w", "run/COMPLETED/w"])
        await tx.triggers.set_topics(id_of("b"), ["event/run/FAILED/w"])
    error = StepError(code="agent_error", message="m\x00")
    failed = transition(1, status="FAILED", finished_at=NOW)
    failed.state.error = error
    await write(store, failed)
    async with store.transaction() as tx:
        assert await tx.triggers.note_run_ends(ends)
        assert await tx.runs.delete_finished(LATER, 10) == 0
    async with store.transaction() as tx:
        (trigger_, run), (_, last) = await tx.triggers.take_pending(10)
        assert isinstance(run, EndedRun)
        assert (trigger_.name, run.id, last.id) == ("a", run_id(1), run_id(3))
        assert (run.status, run.error, run.depth) == ("FAILED", error, 2)
        assert await tx.runs.delete_finished(LATER, 10) == 1


async def test_what_is_listened_to_is_forgotten_with_the_trigger(store: Store) -> None:
    await add(store, trigger("a"), trigger("b"))
    async with store.transaction() as tx:
        for name in ("a", "b"):
            await tx.triggers.set_topics(id_of(name), ["event/x", "run/FAILED/w"])
    await arrive(store, "x")
    async with store.transaction() as tx:
        await tx.triggers.delete("a")
        await tx.triggers.set_topics(id_of("b"), [])
        assert await tx.triggers.listeners(["event/x", "run/FAILED/w"]) == 0
        assert not await tx.triggers.note_run_ends([RunEnd(run_id(1), "run/FAILED/w")])
    assert await take(store) == [("b", "x\x00")]


async def test_what_a_transaction_listens_to_is_forgotten_if_it_fails(store: Store) -> None:
    await add(store, trigger("a"))
    ends = [RunEnd(run_id(1), "run/FAILED/w")]
    with suppress(RuntimeError):
        async with store.transaction() as tx:
            await tx.triggers.set_topics(id_of("a"), ["run/FAILED/w"])
            assert await tx.triggers.note_run_ends(ends)
            raise RuntimeError
    async with store.transaction() as tx:
        assert not await tx.triggers.note_run_ends(ends)
        with suppress(RuntimeError):
            async with tx.savepoint():
                await tx.triggers.set_topics(id_of("a"), ["run/FAILED/w"])
                raise RuntimeError
        assert not await tx.triggers.note_run_ends(ends)


async def test_a_pending_firing_is_taken_by_one_process(one: Store, two: Store) -> None:
    await add(one, trigger("a"))
    async with one.transaction() as tx:
        await tx.triggers.set_topics(id_of("a"), ["event/x", "event/y"])
    await arrive(one, "x", "y")
    async with one.transaction() as tx:
        assert len(await tx.triggers.take_pending(1)) == 1
        assert await take(two) == [("a", "y\x00")]
    assert await take(two) == []


def test_triggers_move_with_everything_else() -> None:
    assert {"triggers", "firings", "trigger_topics", "trigger_occasions"} <= {table.name for table in TABLES}
