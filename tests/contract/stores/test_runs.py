"""What every store promises about runs: their transitions, their history and their end."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest
from tests.contract.backends import OpenStore
from tests.contract.bridges import claim
from tests.contract.samples import (
    NOW,
    event,
    id_of,
    insert,
    item,
    new_run,
    put,
    queue,
    run_id,
    state_of,
    task,
    timer,
    transition,
    woken,
    write,
)

from trunkline.clock import Instant, after
from trunkline.machine.state import Compensation, Failure, RunStatus, StepState, WaitingFor
from trunkline.messages import StepError, TraceContext
from trunkline.stores.base import (
    ExchangeRecord,
    ExistingRun,
    ParentStep,
    RunRecord,
    Store,
    TaskKey,
    Transition,
)
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

FULL_ERROR = StepError(
    code="agent_jsonrpc_error",
    message="It said no: \u0000 ü 漢字",
    fix="Ask nicely.",
    step="a",
    attempt=2,
    jsonrpc_code=-32000,
    http_status=500,
    detail={"deep": [1, 2.5, None]},
    retry_after_ms=1_500,
)
FULL_STEP = StepState(
    name="a",
    status="WAITING",
    attempts=3,
    answered_failures=2,
    replies=1,
    protocol="jsonrpc-2.0",
    context_id="context",
    remote_task_id="remote",
    reply=b'{"text":"yes"}',
    input=b'"\\u0000"',
    output=b"\x00\xff",
    error=FULL_ERROR,
    warnings=("one", "two"),
    waiting_for=WaitingFor(kind="retry", text="Busy.", until=Instant(7)),
    started_at=Instant(5),
    finished_at=Instant(6),
)


async def record_of(store: Store, number: int) -> RunRecord:
    found = await store.runs.get(run_id(number))
    assert found is not None
    return found[0]


async def statuses(store: Store, *numbers: int) -> list[str]:
    return [(await record_of(store, number)).status for number in numbers]


async def test_a_new_run_is_pending_and_comes_back_as_it_was_written(store: Store) -> None:
    trace = TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "congo=t61rcWkgMzE")
    run = msgspec.structs.replace(
        new_run(1),
        input=b'"\\u0000 \xc3\xbc"',
        retry_of=run_id(9),
        trace=trace,
        parent=ParentStep(run_id(8), "call"),
        depth=3,
        routing_version=7,
        started_by="ann",
    )
    await insert(store, run)
    assert await store.runs.get(run_id(1)) == (
        RunRecord(
            id=run_id(1),
            workflow_id=id_of("w"),
            workflow_name="w",
            workflow_version=1,
            status="PENDING",
            version=0,
            seq=0,
            input=b'"\\u0000 \xc3\xbc"',
            correlation_id="c-1",
            created_at=NOW,
            retry_of=run_id(9),
            trace=trace,
            parent=ParentStep(run_id(8), "call"),
            depth=3,
            routing_version=7,
            started_by="ann",
        ),
        [],
    )
    assert await store.runs.status(run_id(1)) == ("PENDING", 0)
    assert await store.runs.get(run_id(2)) is None
    assert await store.runs.status(run_id(2)) is None


async def test_an_idempotency_key_makes_one_run_of_a_workflow(store: Store) -> None:
    await insert(store, new_run(1, key="k", digest=b"d"))
    async with store.transaction() as tx:
        answers = await tx.runs.insert(
            [new_run(2, key="k", digest=b"other"), new_run(3, key="l", digest=b"d"), new_run(4, workflow="v", key="k")]
        )  # fmt: skip
    assert answers == [ExistingRun(run_id(1), b"d"), None, None]
    assert await store.runs.get(run_id(2)) is None
    assert {run.id for run in await store.runs.page(limit=10)} == {run_id(1), run_id(3), run_id(4)}


async def test_an_idempotency_key_makes_one_run_even_within_one_batch(store: Store) -> None:
    async with store.transaction() as tx:
        answers = await tx.runs.insert(
            [new_run(1, key="k", digest=b"1"), new_run(2, key="k", digest=b"2"), new_run(3), new_run(4)]
        )
    assert answers == [None, ExistingRun(run_id(1), b"1"), None, None]


async def test_a_transition_writes_every_field_of_the_run_and_its_steps(store: Store) -> None:
    await insert(store, new_run(1))
    state = state_of(1, status="FAILED", version=1, seq=2)
    state.output, state.error, state.paused = b'"out"', FULL_ERROR, True
    state.contexts = {"A": "context-a", "B": "context-b"}
    state.compensation = Compensation(
        failure=Failure("full", "Full", "hotel"), ends="CANCELLED", reopened=True
    )
    state.cancel_requested_at, state.started_at, state.finished_at = Instant(1), Instant(2), Instant(3)
    events = [event(1, "RunStarted"), event(2)]
    await write(
        store,
        Transition(
            state=state,
            expected_version=0,
            changed_steps=[FULL_STEP, StepState(name="b")],
            events=events,
            applied=[],
        ),
    )
    found = await store.runs.get(run_id(1))
    assert found is not None
    record, steps = found
    for field in (
        "status", "version", "seq", "output", "error", "paused", "contexts", "cancel_requested_at", "started_at",
        "finished_at", "compensation",
    ):  # fmt: skip
        assert getattr(record, field) == getattr(state, field), field
    assert steps == [FULL_STEP, StepState(name="b")]
    assert await store.runs.events(run_id(1), after=0, limit=10) == events
    assert await store.runs.status(run_id(1)) == ("FAILED", 2)


async def test_a_later_transition_replaces_steps_where_they_stand(store: Store) -> None:
    await insert(store, new_run(1))
    await write(store, transition(1, steps=[StepState(name="b"), FULL_STEP]))
    await write(
        store, transition(1, expected=1, steps=[StepState(name="a", status="COMPLETED"), StepState(name="c")])
    )
    found = await store.runs.get(run_id(1))
    assert found is not None
    assert found[1] == [StepState(name="b"), StepState(name="a", status="COMPLETED"), StepState(name="c")]


async def test_a_run_that_has_moved_is_returned_and_nothing_of_it_is_written(store: Store) -> None:
    await insert(store, new_run(1), new_run(2), new_run(3))
    await put(store, item(1, "start"), item(2, "start"))
    rows = {run.run_id: [row for row, _ in run.items] for run in await woken(store)}
    await write(store, transition(1, status="PAUSED"))
    moved = await write(
        store,
        transition(
            1,
            status="COMPLETED",
            steps=[FULL_STEP],
            events=[event(1)],
            applied=rows[run_id(1)],
            timers=[timer(1, "late", 0)],
        ),
        transition(2, events=[event(1)], applied=rows[run_id(2)]),
        transition(4),
    )
    assert moved == {run_id(1), run_id(4)}
    assert await statuses(store, 1, 2, 3) == ["PAUSED", "RUNNING", "PENDING"]
    found = await store.runs.get(run_id(1))
    assert found is not None
    assert found[1] == []
    assert await store.runs.events(run_id(1), after=0, limit=10) == []
    assert [run.run_id for run in await woken(store)] == [run_id(1)]
    assert (await store.backlog.count()).timers == 0


async def test_states_are_loaded_in_the_transaction_that_will_write_them(store: Store) -> None:
    await insert(store, new_run(1), new_run(2))
    async with store.transaction() as tx:
        await tx.runs.write_transitions([transition(1, steps=[FULL_STEP])])
        loaded = await tx.runs.load([run_id(2), run_id(1), run_id(7)])
    assert {record.id: (record.version, steps) for record, steps in loaded} == {
        run_id(1): (1, [FULL_STEP]),
        run_id(2): (0, []),
    }


async def test_of_many_who_write_at_once_each_moves_the_run_once(store: Store) -> None:
    await insert(store, new_run(1))

    async def move() -> None:
        moved = {run_id(1)}
        while moved:
            async with store.transaction() as tx:
                ((record, _),) = await tx.runs.load([run_id(1)])
                await asyncio.sleep(0)
                moved = await tx.runs.write_transitions([transition(1, expected=record.version)])

    await asyncio.gather(*(move() for _ in range(20)))
    assert (await record_of(store, 1)).version == 20


async def test_what_a_failed_transaction_wrote_is_gone(store: Store) -> None:
    await insert(store, new_run(1))

    async def fail() -> None:
        async with store.transaction() as tx:
            await tx.runs.insert([new_run(2)])
            await tx.runs.write_transitions(
                [transition(1, steps=[FULL_STEP], events=[event(1)], timers=[timer(1, "t", 0)])]
            )
            await tx.input_queue.put([item(1, "k")])
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    assert await store.runs.get(run_id(2)) is None
    assert await store.runs.get(run_id(1)) == (await record_of(store, 1), [])
    assert await statuses(store, 1) == ["PENDING"]
    assert await store.runs.events(run_id(1), after=0, limit=10) == []
    backlog = await store.backlog.count()
    assert (backlog.inbox, backlog.timers) == (0, 0)


async def test_readers_see_only_what_is_committed(store: Store) -> None:
    async with store.transaction() as tx:
        await tx.runs.insert([new_run(1)])
        assert await store.runs.get(run_id(1)) is None
    assert await store.runs.get(run_id(1)) is not None


async def test_a_transaction_has_the_time_of_the_databases_clock(store: Store, clock: FakeClock) -> None:
    async with store.transaction() as tx:
        assert tx.now == clock.now()
    clock.advance(timedelta(seconds=5))
    async with store.transaction() as tx:
        assert tx.now == clock.now()


async def test_a_caller_that_is_cancelled_during_the_commit_leaves_all_or_nothing(store: Store) -> None:
    for number in range(1, 16):

        async def write_two(number: int = number) -> None:
            async with store.transaction() as tx:
                await tx.runs.insert([new_run(number)])
                await tx.input_queue.put([item(number, "start")])

        writing = asyncio.create_task(write_two())
        # Each round a little later: before the transaction, within it, during the commit, after it.
        for _ in range(number // 2):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    written = {run.id for run in await store.runs.page(limit=100)}
    assert {run.run_id for run in await woken(store)} == written
    await insert(store, new_run(99))
    assert await store.runs.get(run_id(99)) is not None


async def test_what_was_committed_is_there_after_a_restart(open_store: OpenStore) -> None:
    async with open_store() as store:
        await insert(store, new_run(1))
        await write(store, transition(1, steps=[FULL_STEP], events=[event(1)]))
    async with open_store() as store:
        found = await store.runs.get(run_id(1))
        assert found is not None
        assert (found[0].version, found[1]) == (1, [FULL_STEP])
        await store.check()


async def test_lists_are_newest_first_and_page_by_the_last_id_seen(store: Store) -> None:
    await insert(store, *(new_run(number) for number in (2, 5, 1, 4, 3)))
    page = await store.runs.page(limit=2)
    assert [run.id for run in page] == [run_id(5), run_id(4)]
    rest = await store.runs.page(limit=10, before=page[-1].id)
    assert [run.id for run in rest] == [run_id(3), run_id(2), run_id(1)]
    assert await store.runs.page(limit=10, before=run_id(1)) == []


async def test_events_page_by_their_number(store: Store) -> None:
    await insert(store, new_run(1), new_run(2))
    events = [event(number) for number in range(1, 8)]
    await write(store, transition(1, events=events), transition(2, events=[event(1)]))
    assert await store.runs.events(run_id(1), after=0, limit=3) == events[:3]
    assert await store.runs.events(run_id(1), after=3, limit=10) == events[3:]
    assert await store.runs.events(run_id(1), after=7, limit=10) == []
    assert await store.runs.events(run_id(3), after=0, limit=10) == []


async def test_events_can_be_of_one_step_or_one_item(store: Store) -> None:
    await insert(store, new_run(1), new_run(2))
    events = [
        event(1, "RunStarted", b"{}"),
        event(2, "StepFannedOut", b'{"step":"a","items":2}'),
        event(3, "StepStarted", b'{"step":"a[1]","attempt":1,"agent":"a"}'),
        event(4, "StepSkipped", b'{"step":"ab","reason":"a"}'),
        event(5, "StepRequeued", b'{"step":"a"}'),
        event(6, "RunWaiting", b'{"steps":["a"]}'),
        event(7, "StepRequeued", b'{"step":"a"}'),
    ]
    await write(store, transition(1, events=events), transition(2, events=[event(1)]))
    of_step = await store.runs.events(run_id(1), after=0, limit=10, step="a")
    assert [each.seq for each in of_step] == [2, 5, 7]
    assert await store.runs.events(run_id(1), after=2, limit=1, step="a") == [events[4]]
    assert await store.runs.events(run_id(1), after=0, limit=10, step="a[1]") == [events[2]]
    for nobody in ("", "b", "a[2]", '"a"', "%", "\x00"):
        assert await store.runs.events(run_id(1), after=0, limit=10, step=nobody) == []


async def test_an_events_number_is_never_given_twice(store: Store) -> None:
    await insert(store, new_run(1))
    await write(store, transition(1, events=[event(1)]))
    with pytest.raises(Exception):  # noqa: B017, PT011 - each driver has its own name for it; that it stops is the promise
        await write(store, transition(1, expected=1, events=[event(1)]))
    assert (await record_of(store, 1)).version == 1


async def test_exchanges_page_by_their_row_and_can_be_of_one_step_or_attempt(store: Store) -> None:
    records = [
        ExchangeRecord(run_id(run), step, attempt, f'{{"n":{number}}}'.encode())
        for number, (run, step, attempt) in enumerate([(1, "a", 1), (1, "b", 2), (2, "a", 2), (1, "a", 2)])
    ]
    async with store.transaction() as tx:
        await tx.exchanges.put(records)
    found = await store.exchanges.page(run_id(1), after=0, limit=10)
    assert [record for _, record in found] == [b'{"n":0}', b'{"n":1}', b'{"n":3}']
    first_row = found[0][0]
    later = await store.exchanges.page(run_id(1), after=first_row, limit=1)
    assert [record for _, record in later] == [b'{"n":1}']
    of_step = await store.exchanges.page(run_id(1), after=0, limit=10, step="a")
    assert [record for _, record in of_step] == [b'{"n":0}', b'{"n":3}']
    of_attempt = await store.exchanges.page(run_id(1), after=0, limit=10, attempt=2)
    assert [record for _, record in of_attempt] == [b'{"n":1}', b'{"n":3}']
    of_both = await store.exchanges.page(run_id(1), after=first_row, limit=1, step="a", attempt=2)
    assert [record for _, record in of_both] == [b'{"n":3}']
    assert await store.exchanges.page(run_id(1), after=0, limit=10, attempt=3) == []
    assert await store.exchanges.page(run_id(1), after=0, limit=10, step="\x00") == []


async def fill(store: Store, number: int) -> None:
    """A run with something of everything that can belong to one."""
    await put(store, item(number, "start"))
    await write(
        store, transition(number, steps=[FULL_STEP], events=[event(1)], timers=[timer(number, "t", 900)])
    )
    await queue(store, task(number))
    async with store.transaction() as tx:
        await tx.exchanges.put([ExchangeRecord(run_id(number), "a", 1, b"{}")])
        await tx.tasks.stop("me", [TaskKey(f"{run_id(number)}/never/0", 1)])


async def finish(store: Store, number: int, at: Instant) -> None:
    await write(store, transition(number, expected=1, status="COMPLETED", finished_at=at))


async def test_retention_deletes_whole_runs_and_nothing_else(store: Store) -> None:
    await insert(store, *(new_run(number) for number in (1, 2, 3)))
    for number in (1, 2, 3):
        await fill(store, number)
    await finish(store, 1, NOW)
    await finish(store, 3, after(NOW, timedelta(hours=1)))
    async with store.transaction() as tx:
        assert await tx.runs.delete_finished(after(NOW, timedelta(seconds=1)), 10) == 1
    assert await store.runs.get(run_id(1)) is None
    assert await store.runs.events(run_id(1), after=0, limit=10) == []
    assert await store.exchanges.page(run_id(1), after=0, limit=10) == []
    backlog = await store.backlog.count()
    assert (backlog.inbox, backlog.timers, backlog.queued_tasks) == (2, 2, 2)
    for number in (2, 3):
        found = await store.runs.get(run_id(number))
        assert found is not None
        assert found[1] == [FULL_STEP]
        assert len(await store.runs.events(run_id(number), after=0, limit=10)) == 1
        assert len(await store.exchanges.page(run_id(number), after=0, limit=10)) == 1


async def test_of_a_deleted_run_no_task_is_remembered(store: Store) -> None:
    await insert(store, new_run(1))
    await fill(store, 1)
    await finish(store, 1, NOW)
    async with store.transaction() as tx:
        await tx.runs.delete_finished(after(NOW, timedelta(seconds=1)), 10)
    await queue(store, task(1), task(1, step="never"))
    assert (await store.backlog.count()).queued_tasks == 2


async def test_retention_goes_by_the_end_of_a_run_oldest_first_and_few_at_a_time(store: Store) -> None:
    await insert(store, *(new_run(number) for number in range(1, 6)))
    for number in range(1, 5):
        await write(store, transition(number))
        await finish(store, number, after(NOW, timedelta(minutes=-number)))
    async with store.transaction() as tx:
        assert await tx.runs.delete_finished(NOW, 3) == 3
    assert [run.id for run in await store.runs.page(limit=10)] == [run_id(5), run_id(1)]
    async with store.transaction() as tx:
        assert await tx.runs.delete_finished(NOW, 3) == 1
        assert await tx.runs.delete_finished(NOW, 3) == 0


async def test_the_backlog_counts_what_waits(store: Store) -> None:
    await insert(store, *(new_run(number) for number in range(1, 5)))
    await put(store, item(1, "start"), item(1, "pause"), item(2, "start"))
    await write(store, transition(3, status="PAUSED", timers=[timer(3, "a", 1), timer(3, "b", 2)]))
    await queue(store, task(1), task(2), task(3))
    await claim(store, limit=1)
    backlog = await store.backlog.count()
    assert backlog.runs_by_status == {"PENDING": 3, "PAUSED": 1}
    assert (backlog.inbox, backlog.timers) == (3, 2)
    assert (backlog.queued_tasks, backlog.claimed_tasks, backlog.remote_tasks) == (2, 1, 0)


@pytest.mark.parametrize("status", ["PENDING", "RUNNING"])
async def test_an_unfinished_run_that_nothing_will_wake_is_counted(store: Store, status: RunStatus) -> None:
    await insert(store, new_run(1))
    if status != "PENDING":
        await write(store, transition(1, status=status))
    assert (await store.backlog.count()).without_wake_reason == 1


@pytest.mark.parametrize("status", ["WAITING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"])
async def test_a_run_that_is_over_or_waits_for_a_person_needs_nothing_to_wake_it(
    store: Store, status: RunStatus
) -> None:
    await insert(store, new_run(1))
    await write(store, transition(1, status=status))
    assert (await store.backlog.count()).without_wake_reason == 0


@pytest.mark.parametrize("reason", ["inbox", "timer", "queued", "claimed"])
async def test_every_reason_to_wake_counts_as_one(store: Store, reason: str) -> None:
    await insert(store, new_run(1), new_run(2))
    await write(
        store,
        transition(1, timers=[timer(1, "t", 9)] if reason == "timer" else []),
        transition(2, status="COMPLETED"),
    )
    if reason == "inbox":
        await put(store, item(1, "k"))
    if reason in {"queued", "claimed"}:
        await queue(store, task(1))
    if reason == "claimed":
        await claim(store, limit=1)
    assert (await store.backlog.count()).without_wake_reason == 0


async def test_a_task_that_is_done_is_no_reason_to_wake(store: Store) -> None:
    await insert(store, new_run(1))
    await write(store, transition(1))
    await queue(store, task(1))
    async with store.transaction() as tx:
        await tx.tasks.stop("me", [TaskKey(task(1).task_id, 1)])
    assert (await store.backlog.count()).without_wake_reason == 1


async def test_a_runs_status_is_the_committed_one_and_goes_with_the_run(store: Store) -> None:
    await insert(store, new_run(1))
    await write(store, transition(1, events=[event(1)]))

    async def fail() -> None:
        async with store.transaction() as tx:
            await tx.runs.write_transitions([transition(1, expected=1, status="PAUSED", events=[event(2)])])
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    assert await store.runs.status(run_id(1)) == ("RUNNING", 1)
    await finish(store, 1, NOW)
    assert await store.runs.status(run_id(1)) == ("COMPLETED", 0)
    async with store.transaction() as tx:
        await tx.runs.delete_finished(after(NOW, timedelta(seconds=1)), 10)
        assert await store.runs.status(run_id(1)) == ("COMPLETED", 0)
    assert await store.runs.status(run_id(1)) is None


async def test_items_of_a_step_are_read_apart_from_the_run_and_in_their_order(store: Store) -> None:
    await insert(store, new_run(1), new_run(2))
    names = ["a", "a[10]", "a[2]", "a[0]", "ab[1]", "b"]
    steps = [StepState(name=name, status="RUNNING") for name in names]
    await write(
        store, transition(1, steps=[*steps, StepState(name="a[1]", status="FAILED", error=FULL_ERROR)])
    )
    found = await store.runs.get(run_id(1))
    assert found is not None
    assert [step.name for step in found[1]] == ["a", "b"]
    assert [step.name for step in await store.runs.items(run_id(1), "a", limit=9)] == [
        "a[0]",
        "a[1]",
        "a[2]",
        "a[10]",
    ]
    assert [step.name for step in await store.runs.items(run_id(1), "a", limit=2, after=0)] == [
        "a[1]",
        "a[2]",
    ]
    assert (await store.runs.items(run_id(1), "a", limit=1, after=0))[0].error == FULL_ERROR
    failed = await store.runs.items(run_id(1), "a", limit=9, statuses=["FAILED"])
    assert [step.name for step in failed] == ["a[1]"]
    running = await store.runs.items(run_id(1), "a", limit=2, after=0, statuses=["RUNNING"])
    assert [step.name for step in running] == ["a[2]", "a[10]"]
    either = await store.runs.items(run_id(1), "a", limit=3, statuses=["FAILED", "RUNNING"])
    assert [step.name for step in either] == ["a[0]", "a[1]", "a[2]"]
    assert await store.runs.items(run_id(1), "a", limit=9, statuses=["WAITING"]) == []
    assert await store.runs.items(run_id(2), "a", limit=9) == []
    assert await store.runs.item_counts(run_id(1)) == {"a": {"RUNNING": 3, "FAILED": 1}, "ab": {"RUNNING": 1}}
    assert await store.runs.item_counts(run_id(2)) == {}
    async with store.transaction() as tx:
        ((_, loaded),) = await tx.runs.load([run_id(1)])
    assert [step.name for step in loaded] == [*names, "a[1]"]
