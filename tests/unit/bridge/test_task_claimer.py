"""The bridge's parts of the commit loop: what it writes, publishes and calls, and what it leaves alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.contract.bridges import DEAD, ME, claim, stop, taken
from tests.contract.samples import queue, task

from trunkline.bridge.answer_writer import AnswerWriter
from trunkline.bridge.breaker import BreakerObserver
from trunkline.bridge.calls.active_calls import ActiveCalls
from trunkline.bridge.calls.results import CallExchanges, CallResult, CallUpdate
from trunkline.bridge.lease_heartbeat import Heartbeat, Lease
from trunkline.bridge.task_claimer import TaskClaimer
from trunkline.brokers.base import TaskMessage
from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.messages import AgentResult, AgentTask, CancelTask, ResultStatus, StepError, TaskKey
from trunkline.services.commit_loop import CommitPart
from trunkline.stores.base import ClaimedTask, ExchangeRecord, Store, TaskAnswer, Transaction
from trunkline.telemetry.metrics import Metrics
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio


class FakeBroker:
    """A broker that keeps what is published, as one does whose messages can be lost."""

    hands_over_in_transaction = False

    def __init__(self) -> None:
        self.results: list[AgentResult] = []

    async def publish_tasks(self, tx: Transaction, messages: Sequence[TaskMessage]) -> None: ...

    async def publish_results(self, tx: Transaction, results: Sequence[AgentResult]) -> None:
        del tx
        self.results += results


class HangingAgent:
    """An agent that is called and never answers."""

    def __init__(self) -> None:
        self.called: list[AgentTask] = []
        self.told: list[TaskKey] = []

    async def call(self, claim: ClaimedTask, report: Callable[[CallUpdate], None]) -> CallResult:
        del report
        self.called.append(claim.task)
        await asyncio.Event().wait()
        return self.cancelled(claim)

    def stop_listening(self) -> None:
        """There is nothing to wait for."""

    async def cancel(self, claim: ClaimedTask, *, ended: bool) -> CallResult:
        del ended
        self.told.append(claim.key)
        return self.cancelled(claim)

    def cancelled(self, claim: ClaimedTask) -> CallResult:
        return call_result(claim, "cancelled")

    def failed(self, claim: ClaimedTask, error: StepError) -> CallResult:
        return call_result(claim, "error", error)


class BridgeUnderTest:
    """A bridge without a broker's other side and without agents."""

    def __init__(self, store: Store, *, heartbeat: Heartbeat | None = None) -> None:
        self.store = store
        self.broker = FakeBroker()
        self.agent = HangingAgent()
        self.calls = ActiveCalls(self.agent)
        self.stopping = asyncio.Event()
        self.answers = AnswerWriter(self.broker, self.calls, ME, BreakerObserver(Metrics()))
        self.claims = TaskClaimer(self.broker, self.calls, ME, self.stopping, heartbeat=heartbeat)

    async def turn(self, *others: CommitPart) -> None:
        """One turn of the commit loop."""
        parts: list[CommitPart] = [self.answers, self.claims, *others]
        try:
            async with self.store.transaction() as tx:
                for part in parts:
                    await part.work(tx)
        except RuntimeError:
            for part in parts:
                part.rolled_back()
            return
        for part in parts:
            part.committed()
        # The calls begin.
        await asyncio.sleep(0)

    async def take(self, *messages: TaskMessage) -> None:
        async with self.store.transaction() as tx:
            await self.claims.take_tasks(tx, messages)

    def published(self) -> list[tuple[str, str]]:
        return [(result.task_id, result.status) for result in self.broker.results]

    async def end(self) -> None:
        await self.calls.drain(0)


class FailingPart:
    """A part whose turn fails."""

    async def work(self, tx: Transaction) -> None:
        del tx
        raise RuntimeError("on purpose")

    def committed(self) -> None: ...

    def rolled_back(self) -> None: ...

    def next_wake(self) -> Instant | None: ...


class LateUpdate:
    """A call that ends while the turn waits for the store."""

    def __init__(self, calls: ActiveCalls, late: CallUpdate) -> None:
        self._calls = calls
        self._late = late

    async def work(self, tx: Transaction) -> None:
        del tx
        self._calls.updates.append(self._late)

    def committed(self) -> None: ...

    def rolled_back(self) -> None: ...

    def next_wake(self) -> Instant | None: ...


def result_of(made: AgentTask, status: ResultStatus, error: StepError | None = None) -> AgentResult:
    return AgentResult(
        task_id=made.task_id,
        run_id=made.run_id,
        step=made.step,
        attempt=made.attempt,
        status=status,
        at=Instant(7),
        error=error,
    )


def call_result(claimed: ClaimedTask, status: ResultStatus, error: StepError | None = None) -> CallResult:
    return CallResult(
        claim=claimed,
        answer=TaskAnswer(key=claimed.key, epoch=claimed.epoch),
        result=result_of(claimed.task, status, error),
        exchanges=[],
    )


async def test_an_answer_is_kept_until_its_result_has_arrived(store: Store) -> None:
    bridge = BridgeUnderTest(store)
    await queue(store, task(1))
    (claimed,) = await claim(store)
    bridge.calls.updates.append(call_result(claimed, "success"))
    await bridge.turn()
    assert bridge.published() == [(task(1).task_id, "success")]
    async with store.transaction() as tx:
        kept = await tx.tasks.results([claimed.key])
    assert kept == {claimed.key: encode(result_of(task(1), "success"))}


async def test_a_task_that_is_sent_again_has_its_result_published_again_and_is_not_called(
    store: Store,
) -> None:
    bridge = BridgeUnderTest(store)
    await queue(store, task(1))
    (claimed,) = await claim(store)
    bridge.calls.updates.append(call_result(claimed, "success"))
    await bridge.turn()
    await bridge.take(task(1))
    await bridge.turn()
    assert bridge.published() == [(task(1).task_id, "success")] * 2
    assert bridge.agent.called == []


@pytest.mark.parametrize("is_done", [True, False])
async def test_a_large_task_keeps_its_input_until_it_is_done(store: Store, is_done: bool) -> None:
    bridge = BridgeUnderTest(store)
    large = replace(task(1), input_data={"text": "x" * 100_000}, secrets={"/key": "slack-bot"})
    await queue(store, large)
    (claimed,) = await claim(store)
    result = call_result(claimed, "success")
    if not is_done:
        result.answer, result.result = taken(claimed), None
    bridge.calls.updates.append(result)
    await bridge.turn()
    (stopped,) = await stop(store, claimed.key)
    # Its agent can be told to stop, and its secret is hidden if the agent repeats it.
    without = replace(large, input_data=None, secrets={}, told_secrets=["slack-bot"])
    assert stopped.claim.task == (without if is_done else large)


async def test_an_answer_that_is_not_ours_any_more_is_not_published(store: Store) -> None:
    bridge = BridgeUnderTest(store)
    await queue(store, task(1), task(2))
    ours, stale = await claim(store)
    bridge.calls.updates += [
        call_result(ours, "success"),
        call_result(
            ClaimedTask(key=stale.key, task=stale.task, epoch=stale.epoch - 1),
            "success",
        ),
    ]
    await bridge.turn()
    assert bridge.published() == [(ours.task.task_id, "success")]


async def test_an_answer_whose_turn_failed_is_written_in_the_next(store: Store) -> None:
    bridge = BridgeUnderTest(store)
    await queue(store, task(1))
    (claimed,) = await claim(store)
    bridge.calls.updates.append(call_result(claimed, "success"))
    await bridge.turn(FailingPart())
    assert (await store.backlog.count()).claimed_tasks == 1
    await bridge.turn()
    assert (await store.backlog.count()).claimed_tasks == 0
    assert bridge.calls.updates == []


async def test_an_answer_that_comes_during_a_turn_waits_for_the_next(store: Store) -> None:
    bridge = BridgeUnderTest(store)
    await queue(store, task(1), task(2))
    first, second = await claim(store)
    bridge.calls.updates.append(call_result(first, "success"))
    await bridge.turn(LateUpdate(bridge.calls, call_result(second, "success")))
    await bridge.turn()
    assert [task_id for task_id, _ in bridge.published()] == [first.key.task_id, second.key.task_id]
    assert (await store.backlog.count()).claimed_tasks == 0


class RecordingObserver:
    """Keeps the results that it was told of."""

    def __init__(self) -> None:
        self.noted: list[CallResult] = []

    async def note(self, tx: Transaction, results: Sequence[CallResult]) -> None:
        del tx
        self.noted += results

    def committed(self) -> None: ...

    def rolled_back(self) -> None: ...


async def test_exchanges_of_a_call_that_decides_nothing_are_kept_and_count_for_nothing(store: Store) -> None:
    bridge, observer = BridgeUnderTest(store), RecordingObserver()
    bridge.answers = AnswerWriter(bridge.broker, bridge.calls, ME, observer)
    await queue(store, task(1))
    (claimed,) = await claim(store)
    run_id = RunId(task(1).run_id)
    exchange = ExchangeRecord(run_id, task(1).step, 1, b'{"kind": "send"}')
    bridge.calls.updates.append(CallExchanges(claim=claimed, exchanges=[exchange]))
    await bridge.turn()
    assert (await store.backlog.count()).claimed_tasks == 1
    assert observer.noted == bridge.published() == []
    stored = await store.exchanges.page(run_id, after=0, limit=2)
    assert [record for _, record in stored] == [exchange.record]


async def test_an_agent_is_called_only_when_the_claim_is_durable(store: Store) -> None:
    bridge = BridgeUnderTest(store)
    await queue(store, task(1))
    await bridge.turn(FailingPart())
    assert bridge.agent.called == []
    assert (await store.backlog.count()).queued_tasks == 1
    await bridge.turn()
    assert bridge.agent.called == [task(1)]
    await bridge.end()


async def test_a_bridge_that_is_to_stop_claims_nothing_more(store: Store) -> None:
    bridge = BridgeUnderTest(store)
    await queue(store, task(1))
    bridge.stopping.set()
    await bridge.turn()
    assert bridge.agent.called == []
    assert (await store.backlog.count()).queued_tasks == 1


async def test_an_unrepeatable_call_is_reported_as_unknown_and_stays_so(store: Store) -> None:
    bridge = BridgeUnderTest(store)
    await queue(store, task(1, at_most_once=True))
    await claim(store, DEAD)
    async with store.transaction() as tx:
        await bridge.claims.reclaim(tx)
    await bridge.turn()
    assert bridge.published() == [(task(1).task_id, "unknown")]
    assert bridge.agent.called == []
    await bridge.take(task(1, at_most_once=True))
    assert bridge.published() == [(task(1).task_id, "unknown")] * 2


async def test_what_the_dead_have_left_is_taken_only_by_who_holds_a_lease_itself(
    store: Store, clock: FakeClock
) -> None:
    heartbeat = Heartbeat(store, ME, Lease())
    bridge = BridgeUnderTest(store, heartbeat=heartbeat)
    await queue(store, task(1))
    await claim(store, DEAD)
    await bridge.turn()
    assert bridge.agent.called == []
    await heartbeat.beat()
    clock.advance(timedelta(seconds=1))
    await bridge.turn()
    assert bridge.agent.called == [task(1)]
    await bridge.end()


async def test_a_claim_whose_commit_was_reported_as_failed_is_called(store: Store, clock: FakeClock) -> None:
    heartbeat = Heartbeat(store, ME, Lease())
    bridge = BridgeUnderTest(store, heartbeat=heartbeat)
    await heartbeat.beat()
    await queue(store, task(1), task(2))
    async with store.transaction() as tx:
        await bridge.claims.work(tx)
    bridge.claims.rolled_back()
    await bridge.turn()
    assert sorted(called.task_id for called in bridge.agent.called) == [task(1).task_id, task(2).task_id]
    # What is under way is not called again.
    bridge.claims.rolled_back()
    clock.advance(timedelta(seconds=1))
    await bridge.turn()
    assert len(bridge.agent.called) == 2
    await bridge.end()


async def test_an_agent_that_still_works_at_shutdown_is_reported(store: Store, clock: FakeClock) -> None:
    heartbeat = Heartbeat(store, ME, Lease())
    bridge = BridgeUnderTest(store, heartbeat=heartbeat)
    await heartbeat.beat()
    await queue(store, task(1))
    (claimed,) = await claim(store)
    went_on = TaskAnswer(key=claimed.key, epoch=claimed.epoch, poll_at=Instant(8), remote_task_id="remote-1")
    bridge.calls.updates.append(CallResult(claim=claimed, answer=went_on, result=None, exchanges=[]))
    # The stop and the news that the agent has taken the task are in one turn, as they are where Kafka brings stops.
    async with store.transaction() as tx:
        await bridge.claims.take_tasks(
            tx, [CancelTask(task_id=task(1).task_id, attempt=1, run_id=task(1).run_id)]
        )
        await bridge.answers.work(tx)
        await bridge.claims.work(tx)
    bridge.answers.committed()
    bridge.claims.committed()
    await asyncio.sleep(0)
    assert bridge.agent.told == [claimed.key]
    clock.advance(timedelta(seconds=1))
    await bridge.turn()
    assert bridge.published() == [(task(1).task_id, "cancelled")]
    assert (await store.backlog.count()).claimed_tasks == 0
