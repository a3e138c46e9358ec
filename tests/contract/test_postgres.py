"""What the PostgreSQL store promises about many processes and about its server, on top of what every store does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, suppress
from datetime import timedelta

import msgspec
import pytest
from deploy.local.folders import service_folder
from deploy.local.postgres import PostgresServer, start_postgres
from tests.contract.bridges import DEAD, LEASE, ME, answer, claim, done, hold, numbers, register, stop
from tests.contract.samples import (
    event,
    insert,
    item,
    key_of,
    new_run,
    put,
    queue,
    run_id,
    task,
    timer,
    transition,
    woken,
    write,
)
from tests.contract.test_store_outbox import message

from trunkline.clock import Instant
from trunkline.errors import AlreadyExists, ConfigurationError, TrunklineError, Unavailable
from trunkline.ids import RunId
from trunkline.machine.state import StepState
from trunkline.stores.base import (
    InboxFilled,
    InboxItem,
    Notice,
    QueuedTask,
    RunsChanged,
    Store,
    TaskAnswer,
    TaskKey,
    TasksRung,
)
from trunkline.stores.migrations import HEAD
from trunkline.stores.postgres import open_postgres
from trunkline.stores.postgres.connection import connect
from trunkline.stores.postgres.inbox import Inbox
from trunkline.stores.postgres.migrate import downgrade, schema_state, upgrade
from trunkline.stores.tables import TASKS
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

OTHER = "another bridge"


@pytest.fixture
def database(postgres_url: str) -> str:
    return postgres_url.rpartition("/")[2]


@pytest.fixture
async def stores(postgres_url: str, clock: FakeClock) -> AsyncGenerator[tuple[Store, Store]]:
    """Two processes, as far as the database can tell."""
    async with (
        open_postgres(postgres_url, clock=clock) as one,
        open_postgres(postgres_url, clock=clock) as two,
    ):
        yield one, two


@pytest.fixture
def one(stores: tuple[Store, Store]) -> Store:
    return stores[0]


@pytest.fixture
def two(stores: tuple[Store, Store]) -> Store:
    return stores[1]


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


# --- two processes at once


async def test_a_run_that_one_executor_has_claimed_is_left_out_by_the_other(one: Store, two: Store) -> None:
    await insert(one, new_run(1), new_run(2))
    await put(one, item(1, "a"), item(2, "a"))
    async with one.transaction() as first, two.transaction() as second:
        assert [run.run_id for run in await first.claim_woken_runs(1)] == [run_id(1)]
        assert [run.run_id for run in await second.claim_woken_runs(10)] == [run_id(2)]


async def test_runs_that_are_claimed_do_not_hide_those_behind_them(one: Store, two: Store) -> None:
    numbers_ = range(1, 13)
    await insert(one, *map(new_run, numbers_))
    await put(one, *(item(number, "a") for number in numbers_))
    async with one.transaction() as first, two.transaction() as second:
        assert len(await first.claim_woken_runs(10)) == 10
        assert [run.run_id for run in await second.claim_woken_runs(2)] == [run_id(11), run_id(12)]


async def test_what_was_applied_just_before_a_run_is_claimed_is_not_applied_again(
    one: Store, two: Store
) -> None:
    await insert(one, new_run(1))

    async def drive(store: Store) -> list[bytes]:
        async with store.transaction() as tx:
            woken = await tx.claim_woken_runs(10)
            for run in woken:
                applied = [row for row, _ in run.items]
                moved = await tx.write_transitions([transition(1, expected=run.version, applied=applied)])
                assert moved == set()
            return [payload for run in woken for _, payload in run.items]

    for number in range(40):
        await put(one, item(1, f"k{number}", str(number).encode()))
        taken = await asyncio.gather(drive(one), drive(two), drive(one), drive(two))
        assert [payload for each in taken for payload in each] == [str(number).encode()]
    record = await one.run(run_id(1))
    assert record is not None
    assert record[0].version == 40


async def test_a_run_that_another_process_has_moved_meanwhile_is_returned(one: Store, two: Store) -> None:
    await insert(one, new_run(1), new_run(2))
    async with one.transaction() as tx:
        await tx.load_runs([run_id(1), run_id(2)])
        await write(two, transition(1, events=[event(1)]))
        moved = await tx.write_transitions(
            [transition(2, events=[event(1)]), transition(1, status="PAUSED", events=[event(1)])]
        )
        assert moved == {run_id(1)}
    assert await one.run_status(run_id(1)) == ("RUNNING", 1)
    assert await one.run_status(run_id(2)) == ("RUNNING", 1)


async def test_an_idempotency_key_makes_one_run_among_all_processes(one: Store, two: Store) -> None:
    async def start(store: Store, number: int) -> RunId:
        async with store.transaction() as tx:
            (existing,) = await tx.insert_runs([new_run(number, key="k", digest=b"d")])
        return run_id(number) if existing is None else existing.id

    started = await asyncio.gather(*(start((one, two)[number % 2], number) for number in range(1, 9)))
    assert len(set(started)) == 1
    assert [run.id for run in await one.runs(limit=10)] == list(set(started))


async def test_two_who_bring_the_same_items_in_another_order_do_not_block_one_another(
    one: Store, two: Store
) -> None:
    await insert(one, *(new_run(number) for number in range(1, 41)))
    for turn in range(5):
        items = [InboxItem(run_id(number), f"k{turn}", b"") for number in range(1, 41)]
        await asyncio.gather(put(one, *items), put(two, *reversed(items)))
    assert (await one.backlog()).inbox == 200


async def test_a_task_is_claimed_by_one_of_two_bridges(one: Store, two: Store) -> None:
    await queue(one, *(task(number) for number in range(1, 41)))
    await hold(one, ME)
    await hold(one, OTHER)
    claims = await asyncio.gather(*(claim(*pair, limit=7) for pair in ((one, ME), (two, OTHER)) * 4))
    keys = [each.key for claimed in claims for each in claimed]
    assert len(keys) == len(set(keys))


async def test_an_agent_never_has_more_calls_than_it_allows_over_all_bridges(one: Store, two: Store) -> None:
    await register(one, "A", 3)
    await queue(one, *(task(number) for number in range(1, 41)))
    for _ in range(10):
        mine, others = await asyncio.gather(claim(one, ME), claim(two, OTHER))
        backlog = await one.backlog()
        assert backlog.claimed_tasks <= 3
        await answer(one, *map(done, mine), owner=ME)
        await answer(one, *map(done, others), owner=OTHER)


async def test_a_bridge_that_finds_an_agent_locked_looks_again_at_once(
    one: Store, two: Store, clock: FakeClock
) -> None:
    await register(one, "A", 10)
    await queue(one, task(1), task(2))
    await hold(one, ME)
    await hold(one, OTHER)
    async with one.transaction() as first, two.transaction() as second:
        assert len(await first.claim_tasks(ME, 1)) == 1
        assert await second.claim_tasks(OTHER, 10) == []
        again = await second.next_poll()
    assert again is not None
    assert clock.now() <= again <= clock.now() + 100_000
    assert numbers(await claim(two, OTHER)) == {run_id(2)}


async def test_a_claim_needs_a_lease_that_lasts(one: Store, clock: FakeClock) -> None:
    await queue(one, task(1))
    await hold(one, ME)
    clock.advance(LEASE)
    async with one.transaction() as tx:
        assert await tx.claim_tasks(ME, 10) == []
        await tx.hold_lease(ME, LEASE)
        assert len(await tx.claim_tasks(ME, 10)) == 1


async def test_tasks_of_a_bridge_whose_lease_has_passed_are_taken_by_one_of_the_others(
    one: Store, two: Store, clock: FakeClock
) -> None:
    await queue(one, *(task(number, at_most_once=number % 2 == 0) for number in range(1, 9)))
    await hold(one, "frozen", LEASE)
    async with one.transaction() as tx:
        held = await tx.claim_tasks("frozen", 10)
    clock.advance(LEASE - timedelta(seconds=1))
    await hold(one, ME)
    await hold(one, OTHER)

    async def reclaim(store: Store, owner: str) -> list[TaskKey]:
        async with store.transaction() as tx:
            return [each.key for each in (await tx.reclaim_tasks(owner)).in_doubt]

    assert await reclaim(one, ME) == []
    clock.advance(timedelta(seconds=1))
    both = await asyncio.gather(reclaim(one, ME), reclaim(two, OTHER), reclaim(one, ME), reclaim(two, OTHER))
    in_doubt = [key for keys in both for key in keys]
    assert sorted(in_doubt, key=str) == sorted((each.key for each in held if each.task.at_most_once), key=str)
    again = await claim(one, ME)
    assert {each.key for each in again} == {each.key for each in held if not each.task.at_most_once}
    # The frozen one wakes up: what was taken from it is not its own, what is in doubt still is.
    late = await answer(one, *map(done, held), owner="frozen")
    assert late == {each.key for each in again}


async def test_nothing_is_reclaimed_while_the_database_has_not_been_up_for_long(one: Store) -> None:
    await queue(one, task(1))
    await claim(one, DEAD)
    async with one.transaction() as tx:
        await tx.reclaim_tasks(ME, timedelta(days=3650))
    assert await claim(one) == []
    async with one.transaction() as tx:
        await tx.reclaim_tasks(ME)
    assert len(await claim(one)) == 1


async def test_a_stop_meets_a_task_that_another_bridge_is_just_taking_in(one: Store, two: Store) -> None:
    await insert(one, *(new_run(number) for number in range(1, 21)))
    for number in range(1, 21):
        stopped, _ = await asyncio.gather(stop(one, key_of(task(number))), queue(two, task(number)))
        assert [each.was for each in stopped] in ([], ["queued"])
        assert await claim(one) == []


async def test_a_stop_for_a_run_that_is_gone_leaves_nothing(one: Store) -> None:
    assert await stop(one, key_of(task(1))) == []
    async with one.transaction() as tx:
        assert [row async for batch in tx.dump(TASKS) for row in batch] == []


async def test_each_row_of_the_outbox_is_taken_by_one_of_two_relays(one: Store, two: Store) -> None:
    async with one.transaction() as tx:
        await tx.put_outbox([message(1)])
    async with one.transaction() as tx:
        await tx.put_outbox([message(2)])
    async with one.transaction(durable=False) as first, two.transaction(durable=False) as second:
        assert await first.take_outbox(1) == [message(1)]
        assert await second.take_outbox(10) == [message(2)]
    assert (await one.backlog()).outbox == 0


async def test_a_timer_rings_once_among_all_executors(one: Store, two: Store, clock: FakeClock) -> None:
    await insert(one, *(new_run(number) for number in range(1, 31)))
    await write(one, *(transition(number, timers=[timer(number, "t", 1)]) for number in range(1, 31)))
    clock.advance(timedelta(seconds=1))

    async def ring(store: Store) -> int:
        async with store.transaction() as tx:
            return await tx.take_due_timers(20)

    assert sum(await asyncio.gather(ring(one), ring(two), ring(one), ring(two))) == 30
    assert (await one.backlog()).inbox == 30


async def test_executors_that_drop_the_timers_the_others_ring_do_not_block_one_another(
    one: Store, two: Store, clock: FakeClock
) -> None:
    await insert(one, new_run(1), new_run(2))
    await write(one, *(transition(number, timers=[timer(number, "t", number)]) for number in (1, 2)))
    clock.advance(timedelta(seconds=5))
    async with one.transaction() as first, two.transaction() as second:
        assert await first.take_due_timers(1) == 1
        assert await second.take_due_timers(1) == 1
        # Each has the timer of the run that the other one moves.
        await first.write_transitions([transition(2, expected=1, dropped=["t"])])
        await second.write_transitions([transition(1, expected=1, dropped=["t"])])


async def test_old_runs_are_deleted_by_one_process_at_a_time_and_the_others_take_the_rest(
    one: Store, two: Store
) -> None:
    await insert(one, *(new_run(number) for number in range(1, 7)))
    await write(
        one,
        *(transition(number, status="COMPLETED", finished_at=Instant(number)) for number in range(1, 7)),
    )
    async with one.transaction() as first, two.transaction() as second:
        assert await first.delete_finished_runs(Instant(100), 4) == 4
        assert await second.delete_finished_runs(Instant(100), 4) == 2
    assert await one.runs(limit=10) == []


# --- doorbells


async def test_what_is_announced_is_heard_in_every_process_once_it_is_committed(
    one: Store, two: Store
) -> None:
    heard: list[Notice] = []
    many = [RunId(f"018f0000-0000-7000-8000-{number:012x}") for number in range(1_000)]

    async def fail() -> None:
        async with one.transaction() as tx:
            await tx.announce(RunsChanged([run_id(9)]))
            raise RuntimeError("on purpose")

    async with two.listen(heard.append):
        with pytest.raises(RuntimeError, match="on purpose"):
            await fail()
        async with one.transaction() as tx:
            await tx.announce(RunsChanged(many, many[:400]))
            await tx.announce(RunsChanged([]))

        def changed() -> set[RunId]:
            return {run for notice in heard if isinstance(notice, RunsChanged) for run in notice.run_ids}

        await eventually(lambda: changed() == set(many))
        ended = {run for notice in heard if isinstance(notice, RunsChanged) for run in notice.ended}
        assert ended == set(many[:400])
        before = len(heard)
        async with one.transaction() as tx:
            await tx.announce(InboxFilled())
            await tx.announce(TasksRung())
        await eventually(lambda: InboxFilled() in heard[before:] and TasksRung() in heard[before:])


async def test_a_listener_that_lost_its_connection_listens_again(
    one: Store, two: Store, postgres: PostgresServer, database: str
) -> None:
    heard: list[Notice] = []
    async with two.listen(heard.append):
        await eventually(lambda: heard == [InboxFilled()])
        _hang_up(postgres, database)
        # It rings when it is back: something may have been missed.
        await eventually(lambda: len(heard) > 1)
        while RunsChanged([run_id(1)], frozenset()) not in heard:
            await _try_to_announce(one)
            await asyncio.sleep(0.05)


async def _try_to_announce(store: Store) -> None:
    try:
        async with store.transaction() as tx:
            await tx.announce(RunsChanged([run_id(1)]))
    except Unavailable:
        # Its connections were cut too.
        return


# --- a server that goes away


def _hang_up(postgres: PostgresServer, database: str) -> None:
    condition = f"datname = '{database}' AND pid <> pg_backend_pid()"
    postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {condition}")  # noqa: S608 - ours


async def test_a_lost_connection_is_said_and_the_next_transaction_has_a_new_one(
    one: Store, postgres: PostgresServer, database: str
) -> None:
    await insert(one, new_run(1))

    async def lose() -> None:
        async with one.transaction() as tx:
            await tx.insert_runs([new_run(2)])
            _hang_up(postgres, database)
            await tx.put_inbox([item(2, "start")])

    with pytest.raises(Unavailable, match=r"PostgreSQL at 127\.0\.0\.1") as raised:
        await lose()
    assert "tried again" in raised.value.fix
    await insert(one, new_run(3))
    assert [run.id for run in await one.runs(limit=10)] == [run_id(3), run_id(1)]


async def test_a_connection_that_is_lost_before_the_commit_leaves_nothing(
    one: Store, postgres: PostgresServer, database: str
) -> None:
    async def lose() -> None:
        async with one.transaction() as tx:
            await tx.insert_runs([new_run(1)])
            _hang_up(postgres, database)

    with pytest.raises(Unavailable):
        await lose()
    assert await one.runs(limit=10) == []


async def test_connections_that_were_cut_while_nobody_used_them_cost_nothing(
    one: Store, postgres: PostgresServer, database: str
) -> None:
    await insert(one, new_run(1))
    _hang_up(postgres, database)

    async def is_back() -> bool:
        try:
            return (await one.run_status(run_id(1))) == ("PENDING", 0)
        except Unavailable:
            return False

    async with asyncio.timeout(30):
        while not await is_back():
            await asyncio.sleep(0.01)


async def test_a_failure_that_the_caller_hides_does_not_pass_for_a_commit(one: Store) -> None:
    agent = await register(one, "A")

    async def hide() -> None:
        async with one.transaction() as tx:
            await tx.insert_runs([new_run(1)])
            with suppress(AlreadyExists):
                await tx.insert_agent(agent)

    with pytest.raises(Unavailable, match="rolled"):
        await hide()
    assert await one.runs(limit=10) == []


async def test_readers_that_are_cancelled_leave_working_connections(one: Store) -> None:
    await insert(one, new_run(1))
    for number in range(30):
        reading = asyncio.create_task(one.run(run_id(1)))
        for _ in range(number % 6):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    assert await one.run_status(run_id(1)) == ("PENDING", 0)


async def test_a_lock_that_is_not_given_in_time_is_said(one: Store, two: Store) -> None:
    await insert(one, new_run(1))
    async with one.transaction() as holder:
        await holder.write_transitions([transition(1)])
        with pytest.raises(Unavailable, match="a lock was not given in time"):
            async with two.transaction() as tx:
                await tx.write_transitions([transition(1)])


async def test_a_database_that_is_for_reading_only_is_said(
    postgres_url: str, postgres: PostgresServer, database: str
) -> None:
    postgres.execute(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    async with open_postgres(postgres_url) as store:
        with pytest.raises(Unavailable, match="for reading only"):
            await insert(store, new_run(1))
        assert await store.runs(limit=10) == []


async def test_a_statement_that_takes_too_long_is_said(postgres_url: str) -> None:
    db = await connect(postgres_url, {"statement_timeout": "1ms"})
    with pytest.raises(Unavailable, match="took too long"):
        await db.rows("SELECT pg_sleep(60)")
    await db.close()


async def test_whoever_stops_inside_a_transaction_loses_it_and_what_it_had_claimed_is_free(
    one: Store, postgres_url: str
) -> None:
    await insert(one, new_run(1))
    await put(one, item(1, "start"))
    db = await connect(postgres_url)
    await db.command("BEGIN")
    assert len(await Inbox(db).claim(10)) == 1
    await db.command("SET LOCAL idle_in_transaction_session_timeout = '10ms'")
    await eventually(lambda: db.is_closed)
    with pytest.raises(Unavailable):
        await db.command("COMMIT")
    assert [run.run_id for run in await woken(one)] == [run_id(1)]


@pytest.mark.parametrize(
    ("state", "words"),
    [("53100", "the disk is full"), ("53300", "no more connections"), ("40P01", "waited for one another")],
)
async def test_what_a_server_may_lack_is_said_with_what_to_do(
    postgres_url: str, state: str, words: str
) -> None:
    db = await connect(postgres_url)
    with pytest.raises(Unavailable, match=words) as raised:
        await db.command(
            f"DO $$ BEGIN RAISE EXCEPTION 'as the server says' USING ERRCODE = '{state}'; END $$"
        )
    assert "as the server says" in raised.value.message
    assert raised.value.fix
    await db.close()


# --- what agents can make up


STRANGE = "\x00 \x1a \x1a0000 \ud800 \udfff ü 漢字 😀"


async def test_texts_that_postgresql_refuses_come_back_as_they_were(one: Store, clock: FakeClock) -> None:
    await insert(one, new_run(1), new_run(2))
    step = StepState(name="a", context_id=STRANGE, remote_task_id=STRANGE, protocol=STRANGE)
    await write(one, transition(1, steps=[step]), transition(2, steps=[StepState(name="a")]))
    found = await one.run(run_id(1))
    assert found is not None
    assert found[1] == [step]
    strange = msgspec.structs.replace(task(1), task_id=f"{run_id(1)}/{STRANGE.replace('/', '')}/0")
    plain = msgspec.structs.replace(task(2), agent="\x00")
    async with one.transaction() as tx:
        await tx.put_tasks([QueuedTask(strange, b'{"task_id":"x"}'), QueuedTask(plain, b'{"task_id":"y"}')])
    claimed = {each.key: each for each in await claim(one)}
    assert set(claimed) == {key_of(strange), key_of(plain)}
    answer_ = TaskAnswer(
        key=key_of(strange), epoch=1, remote_task_id=STRANGE, poll_at=clock.now(), deadline=None
    )
    assert await answer(one, answer_) == set()
    (asked,) = await claim(one)
    assert (asked.key, asked.remote_task_id) == (key_of(strange), STRANGE)


@pytest.mark.parametrize("text", ["", "no uuid", "018F0000-0000-7000-8000-000000000001", "\x00", "x" * 9_000])
async def test_an_id_that_cannot_be_one_is_not_found(one: Store, text: str) -> None:
    await insert(one, new_run(1))
    assert await one.run(RunId(text)) is None
    assert await one.run_status(RunId(text)) is None
    assert await one.events(RunId(text), after=0, limit=10) == []
    assert await one.exchanges(RunId(text), after=0, limit=10) == []
    assert await one.agent(text) is None
    assert await one.workflow(text) is None
    assert await one.dead_letter(text) is None
    async with one.transaction() as tx:
        assert await tx.unknown_runs([RunId(text), run_id(1)]) == {RunId(text)}
        assert await tx.load_runs([RunId(text)]) == []
        await tx.put_inbox([InboxItem(RunId(text), "k", b""), item(1, "k")])
        assert [run.run_id for run in await tx.claim_woken_runs(10)] == [run_id(1)]
        assert await tx.take_dead_letter(text) is None
        assert not await tx.delete_agent(text)
        assert await tx.revoke_key(text) is None
        assert await tx.stop_tasks(ME, [TaskKey(text, 1)]) == []


# --- the schema


async def test_a_schema_that_is_behind_ahead_or_missing_is_said_and_upgraded(
    postgres_url: str, postgres: PostgresServer, database: str
) -> None:
    async def refusal() -> TrunklineError:
        with pytest.raises(ConfigurationError) as raised:
            async with open_postgres(postgres_url):
                pass
        return raised.value

    await downgrade(postgres_url, "0002")
    error = await refusal()
    assert ("revision 0002" in error.message, error.fix) == (True, "Run: trunkline db upgrade")
    await downgrade(postgres_url, "base")
    assert (await schema_state(postgres_url)).revision is None
    error = await refusal()
    assert ("no tables" in error.message, error.fix) == (True, "Run: trunkline db upgrade")
    await asyncio.gather(*(upgrade(postgres_url) for _ in range(3)))
    assert (await schema_state(postgres_url)).revision == HEAD
    async with open_postgres(postgres_url, upgrade=True) as store:
        await insert(store, new_run(1))
        await store.check()
        postgres.execute("UPDATE alembic_version SET version_num = '9999'", database)
        error = await refusal()
        assert "revision 9999" in error.message
        assert "newer version" in error.fix
        # A newer schema only adds: who runs already goes on.
        await store.check()
        postgres.execute("UPDATE alembic_version SET version_num = '0002'", database)
        with pytest.raises(Unavailable, match="revision 0002"):
            await store.check()


async def test_a_database_of_another_program_is_left_alone(postgres: PostgresServer, database: str) -> None:
    name = f"{database}_other"
    postgres.create_database(name)
    try:
        postgres.execute("CREATE TABLE runs (notes text); INSERT INTO runs VALUES ('mine')", name)
        with pytest.raises(ConfigurationError, match="could not be changed"):
            await upgrade(postgres.url(name))
        assert postgres.execute("SELECT notes FROM runs", name) == "mine"
        assert (await schema_state(postgres.url(name))).revision is None
    finally:
        postgres.drop_database(name)


# --- getting in


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("/test_", "/nobody_"), "no such database"),
        (("127.0.0.1:", "127.0.0.1:1"), "PostgreSQL at"),
        (("127.0.0.1", "no-such-host.invalid"), "no-such-host.invalid"),
    ],
)
async def test_a_database_that_cannot_be_reached_is_said_without_the_password(
    postgres_url: str, change: tuple[str, str], words: str
) -> None:
    url = postgres_url.replace("://trunkline@", "://trunkline:my-password@").replace(*change)
    with pytest.raises(TrunklineError, match=words) as raised:
        async with open_postgres(url):
            pass
    assert isinstance(raised.value, Unavailable | ConfigurationError)
    assert "my-password" not in f"{raised.value.message} {raised.value.fix}"


async def test_a_wrong_password_is_said_without_it() -> None:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(service_folder("password"))
        cluster = stack.enter_context(start_postgres(folder / "postgres", fsync=False, auth="scram-sha-256"))
        assert cluster.password is not None
        url = cluster.url()
        await upgrade(url)
        with pytest.raises(Unavailable, match="refuses the login") as raised:
            async with open_postgres(url.replace(cluster.password, "my-password")):
                pass
        assert "my-password" not in f"{raised.value.message} {raised.value.fix}"
        assert "TRUNKLINE_STORE" in raised.value.fix
        # And when the server goes away and comes back.
        async with open_postgres(url) as store:
            await insert(store, new_run(1))
            cluster.crash()
            with pytest.raises(Unavailable):
                await insert(store, new_run(2))
            with pytest.raises(Unavailable):
                await store.check()
            cluster.start()
            await store.check()
            await insert(store, new_run(2))
            assert len(await store.runs(limit=10)) == 2


@pytest.mark.parametrize("url", ["postgresql://user:my-pass word@[::1/x", "postgresql://h:my-password:1:2/x"])
async def test_an_address_that_is_none_is_said_without_the_password(url: str) -> None:
    with pytest.raises(TrunklineError) as raised:
        async with open_postgres(url):
            pass
    assert "my-pass" not in f"{raised.value.message} {raised.value.fix}"
