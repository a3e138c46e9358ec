"""Records into the store: settled when committed, kept when not, and a bad record affects no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from tests.contract.samples import insert, new_run, task

from trunkline.brokers.base import TaskMessage
from trunkline.clock import Instant
from trunkline.errors import Unavailable
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.messages import (
    AgentResult,
    AgentTask,
    BrokerRecord,
    CancelTask,
    Dispatch,
    OutgoingMessage,
    TaskKey,
)
from trunkline.messages.codec import MAX_VALUE_BYTES, encode_result, encode_task
from trunkline.services.commit_loop import CommitPart
from trunkline.services.messaging.deliveries import Deliveries, result_deliveries, task_deliveries
from trunkline.stores.base import DeadLetter, QueuedInput, QueuedTask, Store, TaskAnswer, Transaction
from trunkline.telemetry.metrics import Metrics

pytestmark = pytest.mark.anyio


class FakeSource:
    """A source with what a test puts on it."""

    failure: str | None = None

    def __init__(self, *messages: OutgoingMessage | BrokerRecord) -> None:
        self.records = [
            each if isinstance(each, BrokerRecord) else arrived(each, offset)
            for offset, each in enumerate(messages)
        ]

    def waiting(self, limit: int) -> Sequence[BrokerRecord]:
        return self.records[:limit]

    def settle(self, records: Sequence[BrokerRecord]) -> None:
        self.records = [each for each in self.records if each not in records]

    def on_arrival(self, notify: Callable[[], None]) -> None: ...


class TaskRecorder:
    """Writes what it takes into the inbox, which refuses some of it as a database would."""

    def __init__(self, *refused: str) -> None:
        self.refused = set(refused)
        self.taken: list[str] = []
        self.calls = 0

    async def tasks(self, tx: Transaction, messages: Sequence[TaskMessage]) -> None:
        await self._take(tx, [message.task_id for message in messages])

    async def results(self, tx: Transaction, results: Sequence[AgentResult]) -> None:
        await self._take(tx, [result.task_id for result in results])

    async def _take(self, tx: Transaction, names: Sequence[str]) -> None:
        self.calls += 1
        await tx.input_queue.put([QueuedInput(RunId("r"), name, b"{}") for name in names])
        for name in names:
            if name in self.refused:
                raise ValueError(f"no column can hold it\nDETAIL: the secret in {name}")
        self.taken += names


def arrived(message: OutgoingMessage, offset: int = 0) -> BrokerRecord:
    return BrokerRecord(
        topic=message.topic,
        partition=2,
        offset=offset,
        key=message.record_key,
        value=message.value,
        headers=message.headers,
    )


def sent(number: int) -> OutgoingMessage:
    return encode_task(task(number), "tasks")


def ids(*numbers: int) -> list[str]:
    return [task(number).task_id for number in numbers]


NOISE = OutgoingMessage("tasks", "k", b"noise")


async def turn(store: Store, *parts: CommitPart) -> None:
    """One turn of the commit loop."""
    try:
        async with store.transaction() as tx:
            for part in parts:
                await part.work(tx)
    except Exception:
        for part in parts:
            part.rolled_back()
        raise
    for part in parts:
        part.committed()


async def letters(store: Store) -> list[DeadLetter]:
    return sorted(await store.dead_letters.page(limit=1_000), key=lambda letter: letter.offset)


def count(metrics: Metrics, line: str) -> bool:
    return line in metrics.render().decode()


async def test_what_is_waiting_is_taken_and_settled(store: Store) -> None:
    source, recorder, metrics = FakeSource(sent(1), sent(2)), TaskRecorder(), Metrics()
    deliveries = task_deliveries(source, recorder.tasks, metrics)
    assert deliveries.next_wake() == 0
    await turn(store, deliveries)
    assert recorder.taken == ids(1, 2)
    assert source.records == []
    assert deliveries.next_wake() is None
    assert count(metrics, 'trunkline_records_consumed_total{topic="tasks"} 2.0')


async def test_with_nothing_waiting_no_agent_is_called(store: Store) -> None:
    recorder = TaskRecorder()
    await turn(store, task_deliveries(FakeSource(), recorder.tasks, Metrics()))
    assert recorder.calls == 0


async def test_a_stop_comes_after_the_task_that_it_stops(store: Store) -> None:
    taken: list[TaskMessage] = []

    async def take(_tx: Transaction, messages: Sequence[TaskMessage]) -> None:
        taken.extend(messages)

    stop = CancelTask(task_id=task(1).task_id, attempt=1, run_id=task(1).run_id)
    await turn(store, task_deliveries(FakeSource(sent(1), encode_task(stop, "tasks")), take, Metrics()))
    assert taken == [task(1), stop]


async def test_when_the_store_is_away_the_same_records_wait(store: Store) -> None:
    source, recorder = FakeSource(sent(1), NOISE), TaskRecorder()
    deliveries = task_deliveries(source, recorder.tasks, Metrics())
    for _ in range(2):
        with pytest.raises(Unavailable):
            await turn(store, deliveries, UnavailableStore())
        assert len(source.records) == 2
    await turn(store, deliveries)
    assert source.records == []
    assert [letter.offset for letter in await letters(store)] == [1]


class UnavailableStore:
    """A part that finds the store gone."""

    async def work(self, tx: Transaction) -> None:
        del tx
        raise Unavailable("The database is away.")

    def committed(self) -> None: ...

    def rolled_back(self) -> None: ...

    def next_wake(self) -> Instant | None: ...


async def test_an_unreadable_record_goes_to_the_dead_letters_as_it_came(store: Store) -> None:
    bad = BrokerRecord(
        topic="tasks",
        partition=2,
        offset=9,
        key=b"\xff",
        value=b"\x00\xff",
        headers=(("odd", b"\xfe"), ("odd", b"")),
    )
    source, recorder, metrics = FakeSource(sent(1), bad, sent(2)), TaskRecorder(), Metrics()
    await turn(store, task_deliveries(source, recorder.tasks, metrics))
    assert recorder.taken == ids(1, 2)
    assert source.records == []
    (letter,) = await letters(store)
    assert (letter.topic, letter.partition, letter.offset) == ("tasks", 2, 9)
    assert (letter.key, letter.value, letter.headers) == (bad.key, bad.value, bad.headers)
    assert "trunkline-type" in letter.reason
    assert count(metrics, 'trunkline_dead_letters_total{reason="type"} 1.0')


async def test_a_record_that_comes_twice_is_one_dead_letter(store: Store) -> None:
    for _ in range(2):
        await turn(store, task_deliveries(FakeSource(NOISE), TaskRecorder().tasks, Metrics()))
    assert len(await letters(store)) == 1


async def test_the_record_that_the_store_refuses_is_found_and_becomes_a_dead_letter(store: Store) -> None:
    source, recorder, metrics = (
        FakeSource(*(sent(number) for number in range(1, 31))),
        TaskRecorder(*ids(7, 8, 30)),
        Metrics(),
    )
    deliveries = task_deliveries(source, recorder.tasks, metrics)
    with pytest.raises(ValueError, match="no column"):
        await turn(store, deliveries)
    assert len(source.records) == 30
    await turn(store, deliveries)
    assert source.records == []
    good = [number for number in range(1, 31) if number not in {7, 8, 30}]
    assert sorted(recorder.taken) == sorted(ids(*good))
    found = await letters(store)
    assert [letter.offset for letter in found] == [6, 7, 29]
    assert {letter.value for letter in found} == {sent(number).value for number in (7, 8, 30)}
    assert all("no column can hold it" in letter.reason and "secret" not in letter.reason for letter in found)
    assert count(metrics, 'trunkline_dead_letters_total{reason="refused"} 3.0')


async def test_of_a_record_that_is_refused_nothing_is_written_and_of_the_others_all(store: Store) -> None:
    async def take(tx: Transaction, messages: Sequence[TaskMessage]) -> None:
        tasks = [message for message in messages if isinstance(message, AgentTask)]
        await tx.tasks.put([QueuedTask(each, encode(each)) for each in tasks])
        if any(each.run_id == task(2).run_id for each in tasks):
            raise ValueError("on purpose")

    await insert(store, new_run(1), new_run(2), new_run(3))
    deliveries = task_deliveries(FakeSource(sent(1), sent(2), sent(3)), take, Metrics())
    with pytest.raises(ValueError, match="on purpose"):
        await turn(store, deliveries)
    await turn(store, deliveries)
    async with store.transaction() as tx:
        await tx.leases.hold("me", timedelta(minutes=1))
        claimed = await tx.tasks.claim("me", 10)
    assert sorted(claim.task.run_id for claim in claimed) == [task(1).run_id, task(3).run_id]


async def test_a_store_that_fails_while_a_bad_record_is_looked_for_makes_no_dead_letter(store: Store) -> None:
    calls = 0

    async def take(_tx: Transaction, _messages: Sequence[TaskMessage]) -> None:
        nonlocal calls
        calls += 1
        raise (ValueError("on purpose") if calls < 3 else Unavailable("The database is away."))

    source = FakeSource(sent(1), sent(2))
    deliveries = task_deliveries(source, take, Metrics())
    with pytest.raises(ValueError, match="on purpose"):
        await turn(store, deliveries)
    with pytest.raises(Unavailable):
        await turn(store, deliveries)
    assert len(source.records) == 2
    assert await letters(store) == []


def long_task(number: int) -> AgentTask:
    made = task(number)
    made.input_data = "x" * MAX_VALUE_BYTES
    return made


async def test_a_task_that_travels_by_its_name_is_the_one_that_was_sent(store: Store) -> None:
    taken: list[TaskMessage] = []

    async def take(_tx: Transaction, messages: Sequence[TaskMessage]) -> None:
        taken.extend(messages)

    made = long_task(1)
    async with store.transaction() as tx:
        dispatch = Dispatch(TaskKey(made.task_id, made.attempt), RunId(made.run_id), encode(made))
        await tx.dispatches.put([dispatch], timedelta(seconds=30))
    await turn(store, task_deliveries(FakeSource(encode_task(made, "tasks"), sent(2)), take, Metrics()))
    assert taken == [made, task(2)]


async def test_a_name_whose_message_is_settled_is_dropped(store: Store) -> None:
    source, recorder = FakeSource(encode_task(long_task(1), "tasks")), TaskRecorder()
    await turn(store, task_deliveries(source, recorder.tasks, Metrics()))
    assert recorder.calls == 0
    assert source.records == []
    assert await letters(store) == []


async def test_a_result_that_travels_by_its_name_is_the_stored_one(store: Store) -> None:
    made = task(1)
    result = AgentResult(
        task_id=made.task_id,
        run_id=made.run_id,
        step="a",
        attempt=1,
        status="success",
        at=Instant(5),
        warnings=["x" * MAX_VALUE_BYTES],
    )
    await insert(store, new_run(1))
    async with store.transaction() as tx:
        await tx.leases.hold("me", timedelta(minutes=1))
        await tx.tasks.put([QueuedTask(made, encode(made))])
        (claim,) = await tx.tasks.claim("me", 10)
        await tx.tasks.write_answers(
            "me", [TaskAnswer(key=claim.key, epoch=claim.epoch, result=encode(result))]
        )
    taken: list[AgentResult] = []

    async def take(_tx: Transaction, results: Sequence[AgentResult]) -> None:
        taken.extend(results)

    deliveries: Deliveries[AgentResult] = result_deliveries(
        FakeSource(encode_result(result, "results")), take, Metrics()
    )
    await turn(store, deliveries)
    assert taken == [result]
