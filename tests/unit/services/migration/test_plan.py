"""
The migration plan: the protocol and the offers of each agent, what blocks it, and which expressions would change.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.contract.samples import insert, new_run, run_id

from trunkline.agents import Agent, Dialect
from trunkline.agents.migration import MigrationState, TargetEndpoint
from trunkline.agents.migration.comparison import AnswerComparison, AnswerDifference
from trunkline.agents.migration.rollback_rules import CallWindow, EndpointCallEnd, encode_window
from trunkline.clock import Instant
from trunkline.errors import NotFound
from trunkline.ids import RunId
from trunkline.jsontypes import JsonObject, encode
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.agents.specs import parse_spec
from trunkline.services.migration.plan import MigrationPlan, MigrationPlanEntry
from trunkline.services.migration.states import encode_migration
from trunkline.services.workflows import Workflows
from trunkline.stores.base import Store
from trunkline.stores.port.agents.agent_events import CheckRecord, ComparisonRecord, NewAgentEvent
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

URL = "http://agents.example/a"
JSONRPC = TargetEndpoint(url=URL, protocol="jsonrpc-2.0")
WORKFLOW = b"""
name: w
steps:
  first: {agent: old}
  second: {agent: plain, input: {a: "${ steps.first.output.total }", b: "${ steps.first.output }"}}
output:
  text: ${ steps.second.output.text }
  all: ${ steps.second.output }
"""
READS = b"""
name: reads
steps:
  first: {agent: old}
output:
  score: ${ steps.first.output.data.score }
  text: ${ steps.first.output.text }
"""


@pytest.fixture
def plan(store: Store) -> MigrationPlan:
    return MigrationPlan(store)


async def register(registry: AgentRegistry, name: str, protocol: str, **fields: object) -> Agent:
    document: JsonObject = {"name": name, "url": URL, "protocol": protocol, **fields}  # pyright: ignore[reportAssignmentType]
    return await registry.create(parse_spec(document))


async def at(store: Store, agent: Agent, state: MigrationState) -> None:
    event = NewAgentEvent(
        agent_id=agent.id, agent=agent.name, kind="migration", who="ann", why="", data=encode_migration(state)
    )
    async with store.transaction() as tx:
        await tx.agent_events.put([event])


async def checked(store: Store, agent: Agent, number: int, *, protocol: str, passed: bool = True) -> None:
    async with store.transaction() as tx:
        record = CheckRecord(
            id=run_id(number),
            agent_id=agent.id,
            at=tx.now,
            url=URL,
            protocol=protocol,
            active=False,
            grade="A" if passed else "F",
            passed=passed,
            report=b"{}",
        )
        await tx.checks.put(record, 10)


def codes(entry: MigrationPlanEntry) -> list[str]:
    return [blocker.code for blocker in entry.blockers]


async def test_each_agent_is_listed_with_what_it_speaks_and_offers(
    registry: AgentRegistry, plan: MigrationPlan, store: Store, clock: FakeClock
) -> None:
    unknown = await register(registry, "b", "auto")
    card = Dialect(protocol="a2a-1.0", url=URL, evidence="the card says so", decided_at=clock.now())
    await registry.record_dialect(unknown, card)
    await register(registry, "c", "auto")
    simple = await register(registry, "a", "simple-a2a", repeatable=True)
    await checked(store, simple, 1, protocol="jsonrpc-2.0")
    a, b, c = await plan.entries(limit=10)
    assert [(entry.agent, entry.protocol, entry.in_use) for entry in (a, b, c)] == [
        ("a", "simple-a2a", "simple-a2a"),
        ("b", "auto", "a2a-1.0"),
        ("c", "auto", None),
    ]
    assert [offer.protocol for offer in a.offers] == ["jsonrpc-2.0"]
    assert [(offer.protocol, offer.evidence) for offer in b.offers] == [("a2a-1.0", "the card says so")]
    assert [codes(entry) for entry in (a, b, c)] == [
        ["no_target"],
        [],
        ["protocol_unknown", "no_target", "not_repeatable"],
    ]
    assert [entry.agent for entry in await plan.entries(limit=1, after="a")] == ["b"]


async def test_a_check_of_before_the_target_was_named_does_not_count(
    registry: AgentRegistry, plan: MigrationPlan, store: Store, clock: FakeClock
) -> None:
    agent = await register(registry, "a", "simple-a2a", repeatable=True)
    await checked(store, agent, 1, protocol="jsonrpc-2.0")
    clock.advance(timedelta(seconds=1))
    await at(store, agent, MigrationState(stage="planned", target=JSONRPC, target_at=clock.now()))
    (entry,) = await plan.entries(limit=10)
    assert codes(entry) == ["check_missing", "not_attested"]
    await checked(store, agent, 2, protocol="jsonrpc-2.0", passed=False)
    (entry,) = await plan.entries(limit=10)
    assert codes(entry) == ["check_failed", "not_attested"]
    assert entry.last_check is not None
    assert (entry.last_check.grade, entry.last_check.at) == ("F", clock.now())


async def test_expressions_that_would_read_something_else_are_listed(
    registry: AgentRegistry, plan: MigrationPlan, workflows: Workflows
) -> None:
    await register(registry, "old", "simple-a2a", protocol_config={"output_mode": "data"})
    await register(registry, "plain", "simple-a2a")
    await workflows.save(WORKFLOW)
    old, plain = await plan.entries(limit=10)
    assert [(read.place, read.expression) for read in old.expressions] == [
        ("steps.second.input.a", "steps.first.output.total"),
        ("steps.second.input.b", "steps.first.output"),
    ]
    assert "output_mode: data" in old.expressions[0].why
    assert [(read.place, read.workflow, read.version) for read in plain.expressions] == [
        ("output.all", "w", 1)
    ]


async def test_expressions_that_shadow_answers_show_to_change_are_listed(
    registry: AgentRegistry, plan: MigrationPlan, workflows: Workflows, store: Store
) -> None:
    agent = await register(registry, "old", "simple-a2a", repeatable=True)
    await workflows.save(READS)
    await at(store, agent, MigrationState(stage="shadow", target=JSONRPC, shadow_since=1))
    seen = [
        AnswerComparison(verdict="agree", only_in_old=("/data",)),
        AnswerComparison(verdict="differ", differences=(AnswerDifference("/text", '"a"', '"b"'),)),
        AnswerComparison(verdict="agree"),
    ]
    for since, number in ((1, 0), (1, 1), (1, 2), (99, 0)):
        record = ComparisonRecord(
            id=run_id(10 * since + number),
            agent_id=agent.id,
            since=since,
            run_id=RunId(run_id(1)),
            step="first",
            at=Instant(number),
            verdict=seen[number].verdict,
            record=encode(seen[number]),
        )
        async with store.transaction() as tx:
            await tx.comparisons.put([record], 100)
    (entry,) = await plan.entries(limit=10)
    assert [(read.place, read.expression, read.why) for read in entry.expressions] == [
        (
            "output.score",
            "steps.first.output.data.score",
            "The target's answer did not have data in 1 of 3 comparisons.",
        ),
        (
            "output.text",
            "steps.first.output.text",
            "The target answered another value in 1 of 3 comparisons.",
        ),
    ]


async def test_with_the_same_form_of_output_nothing_changes(
    registry: AgentRegistry, plan: MigrationPlan, workflows: Workflows, store: Store
) -> None:
    agent = await register(registry, "old", "simple-a2a", protocol_config={"output_mode": "data"})
    target = TargetEndpoint(url=URL, protocol="jsonrpc-2.0", protocol_config={"output_mode": "data"})
    await at(store, agent, MigrationState(stage="planned", target=target))
    await workflows.save(WORKFLOW)
    (entry,) = await plan.entries(limit=10)
    assert entry.expressions == []
    # Only the latest version counts.
    await workflows.save(WORKFLOW.replace(b"output.total", b"output.sum"))
    assert (await plan.status("old")).entry.expressions == []


async def test_the_status_of_an_agent_has_the_calls_of_both_sides(
    registry: AgentRegistry, plan: MigrationPlan, store: Store
) -> None:
    agent = await register(registry, "a", "simple-a2a")
    with pytest.raises(NotFound):
        await plan.status("b")
    await at(store, agent, MigrationState(stage="canary", target=JSONRPC, percent=10))
    ends = (
        EndpointCallEnd(failed=False, ms=10),
        EndpointCallEnd(failed=True, ms=1),
        EndpointCallEnd(failed=False, ms=30),
    )
    async with store.transaction() as tx:
        await tx.comparisons.put_calls(
            {(agent.id, "new"): encode_window(CallWindow(rollout_since=1, ends=ends))}
        )
    status = await plan.status("a")
    assert status.entry.calls.keys() == {"new"}
    new = status.entry.calls["new"]
    assert (new.calls, new.failed, new.median_ms, new.slowest_ms) == (3, 1, 30, 30)
    assert [event.agent for event in await plan.events(limit=9, name="a")] == ["a"]
    assert status.old_runs == 0
    await insert(store, new_run(1))
    await at(store, agent, MigrationState(stage="cut_over", target=JSONRPC, cut_over_at=2))
    assert (await plan.status("a")).old_runs == 1


async def test_what_has_happened_to_an_agent_is_known_when_it_is_removed(
    registry: AgentRegistry, plan: MigrationPlan, store: Store
) -> None:
    agent = await register(registry, "a", "simple-a2a")
    other = await register(registry, "b", "simple-a2a")
    for moved in (agent, other, agent):
        await at(store, moved, MigrationState(stage="rolled_back", target=JSONRPC))
    await registry.delete("a")
    for name in ("a", agent.id):
        assert [event.id for event in await plan.events(limit=9, name=name)] == [3, 1]
        assert [event.id for event in await plan.events(limit=9, before=3, name=name)] == [1]
        assert await plan.events(limit=9, before=1, name=name) == []
    for before in (None, 3):
        with pytest.raises(NotFound, match="'nobody'"):
            await plan.events(limit=9, before=before, name="nobody")
    # Whoever has the name now is meant by it; its forerunner is found by its id.
    await register(registry, "a", "simple-a2a")
    assert await plan.events(limit=9, name="a") == []
    assert [event.id for event in await plan.events(limit=9, name=agent.id)] == [3, 1]
