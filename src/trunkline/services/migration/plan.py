"""The migration plan: for each agent its protocols, the state of its migration, and what blocks it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from trunkline.agents import Agent
from trunkline.agents.check_reports import NO_EVIDENCE
from trunkline.agents.migration import MigrationState, TargetEndpoint
from trunkline.agents.migration.blockers import MigrationBlocker, TargetCheck, blockers_of, protocol_in_use
from trunkline.agents.migration.comparison import AnswerComparison
from trunkline.agents.migration.rollback_rules import CallWindow, decode_window
from trunkline.agents.migration.routing import EndpointName
from trunkline.clock import Instant, rfc3339
from trunkline.errors import NotFound
from trunkline.services.migration.output_changes import ChangedRead, changed_reads, form_of, observed_changes
from trunkline.services.migration.readiness import target_check
from trunkline.services.migration.states import decode_migration
from trunkline.services.migration.targets import ProposedInputMode, default_target, proposed_input_mode
from trunkline.stores.base import Store, WorkflowVersion
from trunkline.stores.port.agents.agent_events import AgentEvent, CheckRecord, ComparisonRecord
from trunkline.workflow import OutputRead, all_steps, definition_from_canonical, output_reads

_PAGE = 200
# Checks that are read for what an agent offers in addition to what it speaks, and for the input that it reads.
_LOOKED_AT = 10
# Comparisons that are read for what workflows would read otherwise.
_COMPARISONS = 50
_comparisons = msgspec.json.Decoder(AnswerComparison)
_ENDPOINTS: tuple[EndpointName, ...] = ("old", "new")


class OfferedProtocol(msgspec.Struct, frozen=True, kw_only=True):
    """A protocol that the agent has been seen to speak."""

    protocol: str
    evidence: str


class CheckOutcome(msgspec.Struct, frozen=True, kw_only=True):
    at: Instant
    url: str
    protocol: str
    grade: str
    passed: bool


class EndpointCalls(msgspec.Struct, frozen=True, kw_only=True):
    """How the last calls of an endpoint have ended."""

    calls: int
    failed: int
    # The slowest of them, and the middle one.
    slowest_ms: int | None
    median_ms: int | None


class MigrationPlanEntry(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    url: str
    # As it is registered.
    protocol: str
    # The protocol that is spoken; None: not detected yet.
    in_use: str | None
    offers: list[OfferedProtocol]
    # Workflows that call it, in their latest version.
    workflows: list[str]
    # None: it has not started to migrate.
    state: MigrationState | None
    # The last change of its migration.
    event: AgentEvent | None
    # Of the target; of the agent itself, if there is none.
    last_check: CheckOutcome | None
    blockers: list[MigrationBlocker]
    expressions: list[ChangedRead]
    # Of the present shadow, by their verdict.
    comparisons: dict[str, int]
    calls: dict[EndpointName, EndpointCalls]
    # How the target should get its input; None: as it is configured, because the source does not speak Simple A2A.
    input_mode: ProposedInputMode | None


class MigrationDetail(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one agent's migration."""

    entry: MigrationPlanEntry
    # Unfinished runs that may still call the source after a cutover: until they end it is needed.
    old_runs: int


class _WorkflowReads(msgspec.Struct):
    """What a workflow that calls an agent reads of the outputs of its steps."""

    workflow: str
    version: int
    by_step: dict[str, list[OutputRead]]


class MigrationPlan:
    def __init__(self, store: Store) -> None:
        self._store = store
        # Versions never change: what was read of one is kept while it is the latest.
        self._read: dict[str, tuple[int, dict[str, _WorkflowReads]]] = {}

    async def entries(self, *, limit: int, after: str | None = None) -> list[MigrationPlanEntry]:
        """In the order of their names; `after` is the last name seen."""
        agents = await self._store.agents.page(limit=limit, after=after)
        latest = await self._store.agent_events.latest_migrations([agent.id for agent in agents])
        reads = await self._reads()
        return [await self._entry(agent, latest.get(agent.id), reads) for agent in agents]

    async def state(self, agent: Agent) -> MigrationState | None:
        """The state of the agent's migration."""
        return decode_migration((await self._store.agent_events.latest_migrations([agent.id])).get(agent.id))

    async def status(self, name: str) -> MigrationDetail:
        agent = await self._agent(name)
        event = (await self._store.agent_events.latest_migrations([agent.id])).get(agent.id)
        entry = await self._entry(agent, event, await self._reads())
        old_runs = 0
        if entry.state is not None and entry.state.stage == "cut_over":
            old_runs = await self._store.runs.unfinished_before(entry.state.cut_over_at)
        return MigrationDetail(entry=entry, old_runs=old_runs)

    async def events(
        self, *, limit: int, before: int | None = None, name: str | None = None
    ) -> Sequence[AgentEvent]:
        """
        Newest first; `before` is the last id seen. Of one agent by its name or id; by what its events say, if it was
        removed.
        """
        if name is None:
            return await self._store.agent_events.page(limit=limit, before=before)
        agent = await self._store.agents.get(name)
        if agent is not None:
            return await self._store.agent_events.page(limit=limit, before=before, agent_id=agent.id)
        if await self._store.agent_events.page(limit=1, agent=name):
            return await self._store.agent_events.page(limit=limit, before=before, agent=name)
        if await self._store.agent_events.page(limit=1, agent_id=name):
            return await self._store.agent_events.page(limit=limit, before=before, agent_id=name)
        raise NotFound(
            f"There is no agent {name!r}, and there is no history of an agent with this name.",
            fix="List current and former agents: trunkline agents list, trunkline agents migrate history.",
        )

    async def comparisons(
        self, name: str, *, limit: int, before: str | None = None, verdict: str | None = None
    ) -> Sequence[ComparisonRecord]:
        agent = await self._agent(name)
        return await self._store.comparisons.page(agent.id, limit=limit, before=before, verdict=verdict)

    async def _agent(self, name: str) -> Agent:
        agent = await self._store.agents.get(name)
        if agent is None:
            raise NotFound(f"There is no agent {name!r}.", fix="List the agents: trunkline agents list.")
        return agent

    async def _entry(
        self, agent: Agent, event: AgentEvent | None, reads: dict[str, list[_WorkflowReads]]
    ) -> MigrationPlanEntry:
        state = decode_migration(event)
        checks = await self._store.checks.page(agent.id, limit=_LOOKED_AT)
        target = None if state is None or state.stage == "finished" else state.target
        of_target = None
        if target is not None:
            of_target = await self._store.checks.last(agent.id, target.url, target.protocol)
        last = of_target if target is not None else next(iter(checks), None)
        counts: dict[str, int] = {}
        compared: list[AnswerComparison] = []
        if state is not None and state.shadow_since:
            counts = await self._store.comparisons.counts(agent.id, state.shadow_since)
            compared = await self._compared(agent, state.shadow_since)
        calls = {} if state is None else await self._store.comparisons.calls(agent.id)
        found = reads.get(agent.name, [])
        return MigrationPlanEntry(
            agent=agent.name,
            url=agent.url,
            protocol=agent.protocol,
            in_use=protocol_in_use(agent),
            offers=list(_offers(agent, checks)),
            workflows=[read.workflow for read in found],
            state=state,
            event=event,
            last_check=None if last is None else _last(last),
            blockers=_blockers(agent, state, of_target, checks, counts),
            expressions=_changing(agent, target or default_target(agent, checks), found, compared)
            if target is not None or protocol_in_use(agent) == "simple-a2a"
            else [],
            comparisons=counts,
            calls={name: _calls(decode_window(calls[name])) for name in _ENDPOINTS if name in calls},
            input_mode=_input_mode(agent, state, checks),
        )

    async def _compared(self, agent: Agent, since: int) -> list[AnswerComparison]:
        """The last answers of the present shadow."""
        page = await self._store.comparisons.page(agent.id, limit=_COMPARISONS)
        return [_comparisons.decode(found.record) for found in page if found.since == since]

    async def _reads(self) -> dict[str, list[_WorkflowReads]]:
        """By agent, of the latest version of every workflow."""
        found: dict[str, list[_WorkflowReads]] = {}
        read: dict[str, tuple[int, dict[str, _WorkflowReads]]] = {}
        after = None
        while page := await self._store.workflows.page(limit=_PAGE, after=after):
            for workflow in page:
                known = self._read.get(workflow.workflow_id)
                if known is None or known[0] != workflow.version:
                    known = (workflow.version, await asyncio.to_thread(_reads_of, workflow))
                read[workflow.workflow_id] = known
                for agent, reads in known[1].items():
                    found.setdefault(agent, []).append(reads)
            after = page[-1].name
        self._read = read
        return found


def _is_to_migrate(agent: Agent, state: MigrationState | None) -> bool:
    if state is not None and state.stage in {"planned", "shadow", "canary", "rolled_back"}:
        return True
    return (state is None or state.stage == "finished") and protocol_in_use(agent) in {"simple-a2a", None}


def _blockers(
    agent: Agent,
    state: MigrationState | None,
    check: CheckRecord | None,
    checks: Sequence[CheckRecord],
    counts: dict[str, int],
) -> list[MigrationBlocker]:
    if not _is_to_migrate(agent, state):
        return []
    checked = None
    if check is not None and state is not None and check.at >= state.target_at:
        checked = TargetCheck(passed=check.passed, summary=f"grade {check.grade} at {rfc3339(check.at)}")
        if check.grade == NO_EVIDENCE:
            checked = target_check(checks, state)
    blockers = list(blockers_of(agent, state, checked, counts))
    if not agent.options.repeatable:
        blockers.append(
            MigrationBlocker(
                code="not_repeatable",
                message="The agent is not marked as safe to call twice, so it cannot be shadowed.",
                fix=f"If repeated calls are safe: trunkline agents update {agent.name} --repeatable",
                blocks="shadow",
            )
        )
    return blockers


def _offers(agent: Agent, checks: Sequence[CheckRecord]) -> list[OfferedProtocol]:
    offers: dict[str, OfferedProtocol] = {}
    if agent.dialect is not None:
        offers[agent.dialect.protocol] = OfferedProtocol(
            protocol=agent.dialect.protocol, evidence=agent.dialect.evidence
        )
    for check in checks:
        if check.passed and check.protocol not in offers:
            evidence = f"checked at {rfc3339(check.at)}, grade {check.grade}"
            offers[check.protocol] = OfferedProtocol(protocol=check.protocol, evidence=evidence)
    return list(offers.values())


def _last(check: CheckRecord) -> CheckOutcome:
    return CheckOutcome(
        at=check.at, url=check.url, protocol=check.protocol, grade=check.grade, passed=check.passed
    )


def _input_mode(
    agent: Agent, state: MigrationState | None, checks: Sequence[CheckRecord]
) -> ProposedInputMode | None:
    if not _is_to_migrate(agent, state):
        return None
    target = state.target if state is not None and state.stage != "finished" else None
    aim = target or default_target(agent, checks)
    return proposed_input_mode(agent, aim.url, aim.protocol, checks)


def _changing(
    agent: Agent,
    target: TargetEndpoint,
    reads: Sequence[_WorkflowReads],
    compared: Sequence[AnswerComparison],
) -> list[ChangedRead]:
    """What a migration to the target would change."""
    before = protocol_in_use(agent)
    if before is None:
        return []
    old, new = form_of(before, agent.protocol_config), form_of(target.protocol, target.protocol_config)
    changes: list[ChangedRead] = []
    for found in reads:
        by_form = list(changed_reads(found.workflow, found.version, found.by_step, old, new))
        known = {(change.place, change.expression) for change in by_form}
        changes += by_form
        changes += [
            change
            for change in observed_changes(found.workflow, found.version, found.by_step, compared)
            if (change.place, change.expression) not in known
        ]
    return changes


def _reads_of(workflow: WorkflowVersion) -> dict[str, _WorkflowReads]:
    definition = definition_from_canonical(workflow.canonical)
    by_agent: dict[str, _WorkflowReads] = {}
    for step in all_steps(definition.steps):
        by_agent.setdefault(step.agent, _WorkflowReads(workflow.name, workflow.version, {}))
    for read in output_reads(definition):
        reads = by_agent[read.agent]
        reads.by_step.setdefault(read.step, []).append(read)
    return by_agent


def _calls(window: CallWindow) -> EndpointCalls:
    times = sorted(end.ms for end in window.ends if not end.failed)
    return EndpointCalls(
        calls=len(window.ends),
        failed=sum(end.failed for end in window.ends),
        slowest_ms=times[-1] if times else None,
        median_ms=times[len(times) // 2] if times else None,
    )
