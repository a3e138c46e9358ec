"""Calls that end in a way that nobody has foreseen: they end all the same, and the log says why."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from trunkline.bridge.calls.active_calls import ActiveCalls
from trunkline.bridge.calls.results import CallExchanges, CallResult, CallUpdate
from trunkline.clock import Instant
from trunkline.messages import AgentResult, AgentTask, ResultStatus, StepError
from trunkline.stores.base import ClaimedTask, TaskAnswer, TaskKey
from trunkline.telemetry import log_events
from trunkline.transports.answer_memory import CALL_MEMORY, MemoryBudget

pytestmark = pytest.mark.anyio

TASK = AgentTask(task_id="r/a/0", run_id="r", step="a", agent="A", correlation_id="c")
CLAIM = ClaimedTask(key=TaskKey("r/a/0", 1), task=TASK, epoch=1, remote_task_id="remote")


class FailingRunner:
    """Fails at everything that talks to an agent."""

    async def call(self, claim: ClaimedTask, report: Callable[[CallUpdate], None]) -> CallResult:
        del report
        raise RuntimeError(f"{claim.key} cannot be called")

    def stop_listening(self) -> None:
        """There is nothing to wait for."""

    async def cancel(self, claim: ClaimedTask, *, ended: bool) -> CallResult:
        raise RuntimeError(f"{claim.key} cannot be cancelled ({ended})")

    def cancelled(self, claim: ClaimedTask) -> CallResult:
        return self._finished(claim, "cancelled")

    def failed(self, claim: ClaimedTask, error: StepError) -> CallResult:
        return self._finished(claim, "error", error)

    def _finished(
        self, claim: ClaimedTask, status: ResultStatus, error: StepError | None = None
    ) -> CallResult:
        result = AgentResult(
            task_id=claim.task.task_id,
            run_id=claim.task.run_id,
            step=claim.task.step,
            attempt=claim.task.attempt,
            status=status,
            at=Instant(0),
            error=error,
        )
        return CallResult(
            claim=claim, answer=TaskAnswer(key=claim.key, epoch=claim.epoch), result=result, exchanges=[]
        )


class HangingRunner(FailingRunner):
    """Its agent works forever, and confirms a stop when it is let."""

    def __init__(self) -> None:
        self.confirms = asyncio.Event()

    async def call(self, claim: ClaimedTask, report: Callable[[CallUpdate], None]) -> CallResult:
        await asyncio.Event().wait()
        return await super().call(claim, report)

    async def cancel(self, claim: ClaimedTask, *, ended: bool) -> CallResult:
        assert ended
        await self.confirms.wait()
        return self.cancelled(claim)


class LargeAnswerRunner(FailingRunner):
    """Takes memory for its agent's answer."""

    async def call(self, claim: ClaimedTask, report: Callable[[CallUpdate], None]) -> CallResult:
        del report
        memory = CALL_MEMORY.get()
        assert memory is not None
        await memory.take(10)
        return self.cancelled(claim)


def results(calls: ActiveCalls) -> list[tuple[str, str | None]]:
    found = [item.result for item in calls.updates if not isinstance(item, CallExchanges)]
    return [(item.status, item.error and item.error.code) for item in found if item is not None]


async def test_a_call_that_crashes_is_an_internal_error() -> None:
    calls = ActiveCalls(FailingRunner())
    with capture_logs() as logs:
        calls.start(CLAIM)
        assert await calls.drain(60) == 0
    assert results(calls) == [("error", "internal_error")]
    assert [(line["event"], line["run_id"]) for line in logs] == [(log_events.CALL_CRASHED, "r")]


@pytest.mark.parametrize(("ended", "expected"), [(True, [("cancelled", None)]), (False, [])])
async def test_a_task_is_over_even_if_its_agent_could_not_be_cancelled(
    ended: bool, expected: list[tuple[str, str | None]]
) -> None:
    calls = ActiveCalls(FailingRunner())
    with capture_logs() as logs:
        calls.cancel_remote(CLAIM, ended=ended)
        assert await calls.drain(60) == 0
    assert results(calls) == expected
    assert [(line["event"], line["run_id"]) for line in logs] == [(log_events.CALL_CRASHED, "r")]


async def test_a_call_that_is_broken_off_ends_when_its_agent_has_confirmed() -> None:
    invoker = HangingRunner()
    calls = ActiveCalls(invoker)
    calls.start(CLAIM)
    await asyncio.sleep(0)
    calls.cancel(CLAIM)
    while calls.in_flight > 1:
        await asyncio.sleep(0)
    assert results(calls) == []
    invoker.confirms.set()
    assert await calls.drain(60) == 0
    assert results(calls) == [("cancelled", None)]


async def test_an_answer_keeps_its_memory_until_its_result_is_stored() -> None:
    budget = MemoryBudget(100)
    calls = ActiveCalls(LargeAnswerRunner(), budget)
    calls.start(CLAIM)
    assert await calls.drain(60) == 0
    assert budget.taken_bytes == 10
    calls.discard_written(1)
    assert (budget.taken_bytes, calls.updates) == (0, [])
