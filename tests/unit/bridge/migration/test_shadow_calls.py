"""What the new side would have answered: who is asked, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest
from tests.unit.bridge.migrating_agent import TARGET, MigratingAgent, migrating_agent

from trunkline.agents import NO_OPTIONS
from trunkline.agents.migration.comparison import AnswerComparison
from trunkline.bridge.agents.routes import Route
from trunkline.bridge.calls.detached import DetachedResult
from trunkline.bridge.calls.results import CallResult
from trunkline.bridge.migration.shadow_calls import ShadowCalls
from trunkline.jsontypes import JsonObject, encode
from trunkline.messages import Question, StepError
from trunkline.protocols import Failed, Interrupted, Succeeded
from trunkline.stores.base import ClaimedTask, Store
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.redaction import Redaction
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

SAID: JsonObject = {"text": "hello"}


class FakeTarget:
    """Answers what it is told to, when it may."""

    def __init__(self) -> None:
        self.outcome: Succeeded | Failed | Interrupted | Exception = Succeeded(output=encode(SAID))
        self.asked: list[tuple[ClaimedTask, Route]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def shadow_call(self, claim: ClaimedTask, route: Route) -> DetachedResult:
        self.asked.append((claim, route))
        await self.may_answer.wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return DetachedResult(outcome=self.outcome, protocol="jsonrpc-2.0", redaction=Redaction.of("hunter2"))


class ShadowSetup:
    def __init__(self, migrating: MigratingAgent) -> None:
        self.migrating = migrating
        self.metrics = Metrics()
        self.target = FakeTarget()
        self.shadow = ShadowCalls(
            self.target, migrating.sides, migrating.store, migrating.clock, self.metrics
        )

    async def ends(self, *results: CallResult, commits: bool = True) -> None:
        async with self.migrating.store.transaction() as tx:
            await self.shadow.note(tx, results)
        (self.shadow.committed if commits else self.shadow.rolled_back)()

    async def settle(self) -> None:
        while self.shadow.is_busy:
            await asyncio.sleep(0)

    async def compared(self, number: int = 1) -> Sequence[AnswerComparison]:
        """Oldest first."""
        while True:
            found = await self.migrating.store.comparisons.page(self.migrating.agent.id, limit=1_000)
            if len(found) >= number:
                records = sorted(found, key=lambda each: each.id)
                return [msgspec.json.decode(each.record, type=AnswerComparison) for each in records]
            await asyncio.sleep(0)

    def dropped(self, reason: str) -> float | None:
        labels = {"agent_name": "A", "reason": reason}
        return self.metrics.registry.get_sample_value("shadow_dropped_total", labels)


@pytest.fixture
async def bridge(store: Store, clock: FakeClock) -> AsyncIterator[ShadowSetup]:
    async with migrating_agent(store, clock, options={"repeatable": True}) as migrating:
        ready = ShadowSetup(migrating)
        yield ready
        await ready.shadow.close()


async def test_the_same_task_goes_to_the_new_side_and_the_answers_are_compared(bridge: ShadowSetup) -> None:
    routing_version = await bridge.migrating.set_stage("shadow")
    results = await bridge.migrating.call_result(routing_version, output=SAID)
    await bridge.ends(results)
    (found,) = await bridge.compared()
    assert found == AnswerComparison(verdict="agree", old_protocol="simple-a2a", new_protocol="jsonrpc-2.0")
    ((claim, route),) = bridge.target.asked
    assert (claim.task, route.agent.url, route.endpoint) == (results.claim.task, TARGET.url, "new")
    (record,) = await bridge.migrating.store.comparisons.page(bridge.migrating.agent.id, limit=2)
    assert (record.run_id, record.step, record.since) == (results.claim.task.run_id, "s", 1)
    while (
        bridge.metrics.registry.get_sample_value(
            "shadow_comparisons_total", {"agent_name": "A", "verdict": "agree"}
        )
        != 1
    ):
        await asyncio.sleep(0)


async def test_every_pair_of_ends_has_its_verdict(bridge: ShadowSetup) -> None:
    routing_version = await bridge.migrating.set_stage("shadow")
    migrating = bridge.migrating
    refused = Failed(error=StepError(code="agent_jsonrpc_error", message="No hunter2 here."))
    asks = Interrupted(question=Question(kind="input", text="Which one?"), remote_task_id="r")
    cases = [
        (None, Succeeded(output=encode({"text": "bye"})), "differ"),
        (None, refused, "new_failed"),
        (None, asks, "new_failed"),
        ("agent_task_failed", Succeeded(output=encode(SAID)), "old_failed"),
        ("agent_task_failed", refused, "both_failed"),
    ]
    for number, (error, outcome, verdict) in enumerate(cases, start=1):
        bridge.target.outcome = outcome
        await bridge.ends(await migrating.call_result(routing_version, error=error, output=SAID))
        found = (await bridge.compared(number))[-1]
        assert found.verdict == verdict
        assert "hunter2" not in str(found)


async def test_only_what_is_meant_is_asked_twice(bridge: ShadowSetup) -> None:
    migrating = bridge.migrating
    nobody = await migrating.set_stage("shadow", percent=0)
    canary = await migrating.set_stage("canary", percent=0)
    routing_version = await migrating.set_stage("shadow")
    not_ended = await migrating.call_result(routing_version)
    not_ended.answer = msgspec.structs.replace(not_ended.answer, poll_at=migrating.clock.now())  # pyright: ignore[reportArgumentType]
    await bridge.ends(
        await migrating.call_result(0),
        await migrating.call_result(nobody),
        await migrating.call_result(canary),
        # No answer: nobody knows whether the old side has done it.
        await migrating.call_result(routing_version, error="agent_timeout"),
        await migrating.call_result(routing_version, "cancelled"),
        await migrating.call_result(routing_version, "interrupted"),
        await migrating.call_result(routing_version, at_most_once=True),
        # An answer to a question of the old side.
        await migrating.call_result(routing_version, remote_task_id="r-1"),
        not_ended,
    )
    migrating.agent = msgspec.structs.replace(migrating.agent, options=NO_OPTIONS)
    await bridge.ends(await migrating.call_result(routing_version))
    await bridge.settle()
    assert bridge.target.asked == []


async def test_what_was_not_committed_is_not_asked(bridge: ShadowSetup) -> None:
    routing_version = await bridge.migrating.set_stage("shadow")
    await bridge.ends(await bridge.migrating.call_result(routing_version), commits=False)
    bridge.shadow.committed()
    await bridge.settle()
    assert bridge.target.asked == []


async def test_under_load_shadows_are_left_out_and_counted(bridge: ShadowSetup) -> None:
    routing_version = await bridge.migrating.set_stage("shadow")
    bridge.target.may_answer.clear()
    await bridge.ends(*[await bridge.migrating.call_result(routing_version, output=SAID) for _ in range(80)])
    await asyncio.sleep(0)
    assert len(bridge.target.asked) == 8
    assert bridge.dropped("busy") == 8
    bridge.target.may_answer.set()
    assert len(await bridge.compared(72)) == 72


async def test_a_stop_breaks_shadows_off(bridge: ShadowSetup) -> None:
    routing_version = await bridge.migrating.set_stage("shadow")
    bridge.target.may_answer.clear()
    await bridge.ends(await bridge.migrating.call_result(routing_version))
    await asyncio.sleep(0)
    await bridge.shadow.close()
    await bridge.ends(await bridge.migrating.call_result(routing_version))
    assert len(bridge.target.asked) == 1
    assert bridge.dropped("busy") == 1


async def test_what_could_not_be_sent_is_no_fault_of_the_new_side(bridge: ShadowSetup) -> None:
    routing_version = await bridge.migrating.set_stage("shadow")
    bridge.target.outcome = Failed(error=StepError(code="secret_missing", message="There is no secret."))
    await bridge.ends(await bridge.migrating.call_result(routing_version))
    while not bridge.dropped("not_sent"):
        await asyncio.sleep(0)
    assert await bridge.compared(0) == []


async def test_an_internal_error_of_a_shadow_call_is_counted_and_affects_no_other(
    bridge: ShadowSetup,
) -> None:
    routing_version = await bridge.migrating.set_stage("shadow")
    bridge.target.outcome = RuntimeError("on purpose")
    await bridge.ends(await bridge.migrating.call_result(routing_version))
    while not bridge.dropped("crashed"):
        await asyncio.sleep(0)
    bridge.target.outcome = Succeeded(output=encode(SAID))
    await bridge.ends(await bridge.migrating.call_result(routing_version, output=SAID))
    assert (await bridge.compared())[0].verdict == "agree"
