"""Agent cards and grades that change become events, once each."""

from __future__ import annotations

import msgspec
import pytest

from trunkline.agents import Agent, Dialect
from trunkline.agents.check_reports import AgentCheckReport, AgentFinding, CheckTarget, Grade, Verdict
from trunkline.services.agents.drift import DriftRecorder
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.agents.specs import parse_spec
from trunkline.stores.base import Store
from trunkline.telemetry.metrics import Metrics
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

URL = "http://agents.example/a"


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def drift_recorder(store: Store, metrics: Metrics) -> DriftRecorder:
    return DriftRecorder(store, metrics)


@pytest.fixture
async def agent(registry: AgentRegistry) -> Agent:
    return await registry.create(parse_spec({"name": "a", "url": URL}))


def report(grade: Grade = "A", *, verdict: Verdict = "passed", digest: str | None = "1") -> AgentCheckReport:
    finding = AgentFinding(
        id="echoes-id",
        title="It echoes the id",
        group="answers",
        level="required",
        verdict=verdict,
        expected="the same",
        seen="another",
        fix="Echo it.",
        guide="docs/guides/agents.md",
    )
    return AgentCheckReport(
        url=URL,
        protocol="jsonrpc-2.0",
        chosen="It was requested.",
        active=False,
        started_at="2026-01-01T00:00:00.000000Z",
        duration_ms=1,
        grade=grade,
        passed=grade != "F",
        findings=[finding],
        attestations=[],
        card_digest=digest,
    )


async def kinds(store: Store) -> list[str]:
    return [event.kind for event in await store.agent_events.page(limit=100)]


async def test_a_grade_that_changes_is_an_event_and_counted(
    drift_recorder: DriftRecorder, store: Store, agent: Agent, metrics: Metrics
) -> None:
    await drift_recorder.record_check(agent, report())
    await drift_recorder.record_check(agent, report())
    assert await kinds(store) == []
    record = await drift_recorder.record_check(agent, report("F", verdict="failed"))
    (event,) = await store.agent_events.page(limit=9)
    assert (event.kind, event.who) == ("grade_changed", "trunkline")
    assert event.why == f"The grade at {URL} changed from A to F; regressions: echoes-id."
    assert b'agent_drift_total{agent_name="a",kind="grade"} 1.0' in metrics.render()
    assert await store.checks.last(agent.id, URL, "jsonrpc-2.0") == record


async def test_checks_of_different_sides_are_not_compared(
    drift_recorder: DriftRecorder, store: Store, agent: Agent
) -> None:
    await drift_recorder.record_check(agent, report())
    target = CheckTarget(url="http://agents.example/b", protocol="jsonrpc-2.0")
    record = await drift_recorder.record_check(agent, report("F"), target)
    assert (record.url, record.passed) == ("http://agents.example/b", False)
    assert await kinds(store) == []


async def test_a_check_that_another_version_has_kept_is_no_reason_to_fail(
    drift_recorder: DriftRecorder, store: Store, agent: Agent
) -> None:
    record = await drift_recorder.record_check(agent, report())
    async with store.transaction() as tx:
        await tx.checks.put(msgspec.structs.replace(record, id=f"f{record.id[1:]}", report=b'{"v": 2}'), 9)
    await drift_recorder.record_check(agent, report("F"))
    assert await kinds(store) == []


async def test_a_changed_card_is_recorded_once_by_the_first_process_that_sees_it(
    drift_recorder: DriftRecorder, registry: AgentRegistry, store: Store, agent: Agent, clock: FakeClock
) -> None:
    def dialect(digest: str) -> Dialect:
        return Dialect(
            protocol="a2a-1.0", url=URL, evidence="card", decided_at=clock.now(), card_digest=digest
        )

    assert await registry.record_dialect(agent, dialect("1"))
    assert await registry.record_dialect(await registry.get("a"), dialect("1"))
    assert await kinds(store) == []
    assert await registry.record_dialect(await registry.get("a"), dialect("2"))
    assert await kinds(store) == ["card_changed"]
    await drift_recorder.record_check(agent, report(digest="1"))
    await drift_recorder.record_check(agent, report(digest="2"))
    assert await kinds(store) == ["card_changed"]
    await drift_recorder.record_check(agent, report(digest="3"))
    assert await kinds(store) == ["card_changed"] * 2
