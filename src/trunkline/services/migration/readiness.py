"""Whether agents are ready for their cutover: checks of their targets, and what blocks them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import structlog

from trunkline.agents import Agent
from trunkline.agents.check_reports import NO_EVIDENCE, AgentCheckReport, CheckTarget
from trunkline.agents.migration import MigrationState, TargetEndpoint
from trunkline.agents.migration.blockers import (
    NOT_FORCEABLE,
    MigrationBlocker,
    TargetCheck,
    blockers_of,
)
from trunkline.clock import rfc3339
from trunkline.errors import Finding, NotReady, TrunklineError
from trunkline.jsontypes import encode
from trunkline.services.agents.checks import CheckAgent
from trunkline.services.agents.drift import DriftRecorder
from trunkline.services.migration.repository import AgentMigration
from trunkline.services.migration.targets import checks_of
from trunkline.stores.base import Store
from trunkline.stores.port.agents.agent_events import CheckRecord
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# By the agent's id and the target as JSON.
Checks: TypeAlias = dict[tuple[str, bytes], TargetCheck]
# Of one request; each check is some requests to one agent.
_CHECKS_AT_A_TIME = 8
_SETTLED = frozenset({"cut_over", "finished"})


class CutoverReadiness:
    def __init__(self, store: Store, drifts: DriftRecorder, check: CheckAgent) -> None:
        self._store = store
        self._drifts = drifts
        self._check = check

    async def check_endpoint(
        self, agent: Agent, target: TargetEndpoint | None, *, active: bool = False
    ) -> tuple[CheckRecord, AgentCheckReport]:
        """With `active`, the endpoint gets messages that it takes for work."""
        wanted = None
        if target is not None:
            wanted = CheckTarget(
                url=target.url, protocol=target.protocol, protocol_config=target.protocol_config
            )
        report = await self._check(agent, wanted, active=active)
        return await self._drifts.record_check(agent, report, wanted), report

    async def check_targets(self, migrations: Iterable[AgentMigration]) -> Checks:
        """Checks the targets now, without sending them work."""
        room = asyncio.Semaphore(_CHECKS_AT_A_TIME)
        found: Checks = {}

        async def look(agent: Agent, state: MigrationState, target: TargetEndpoint) -> None:
            async with room:
                found[agent.id, encode(target)] = await self._checked(agent, state, target)

        async with asyncio.TaskGroup() as group:
            for migration in migrations:
                if (
                    migration.state is not None
                    and migration.state.target
                    and migration.state.stage not in _SETTLED
                ):
                    group.create_task(look(migration.agent, migration.state, migration.state.target))
        return found

    async def _checked(self, agent: Agent, state: MigrationState, target: TargetEndpoint) -> TargetCheck:
        try:
            _, report = await self.check_endpoint(agent, target)
        except TrunklineError as exc:
            return TargetCheck(passed=False, summary=exc.message.rstrip("."))
        if report.is_conclusive:
            return TargetCheck(passed=report.passed, summary=summary_of(report))
        return target_check(await checks_of(self._store.checks, agent), state)

    async def refuse_dead_sources(self, migrations: Iterable[AgentMigration]) -> None:
        """Raises `NotReady` if a source that runs would go back to cannot be called."""
        # While an agent is shadowed, all runs call the source anyway.
        leaving = [
            migration
            for migration in migrations
            if migration.state is not None and migration.state.stage in {"canary", "cut_over"}
        ]
        unusable = await self._check_sources(leaving)
        refuse_unusable(
            {
                migration.agent.name: unusable[migration.agent.id]
                for migration in leaving
                if migration.agent.id in unusable
            },
            len(leaving),
        )

    async def _check_sources(self, migrations: Iterable[AgentMigration]) -> dict[str, str]:
        """Why sources cannot be called, by the agent's id, without those that can."""
        room = asyncio.Semaphore(_CHECKS_AT_A_TIME)
        found: dict[str, str] = {}

        async def look(agent: Agent) -> None:
            async with room:
                reason = await self._unusable(agent)
                if reason is not None:
                    found[agent.id] = reason

        async with asyncio.TaskGroup() as group:
            for migration in migrations:
                group.create_task(look(migration.agent))
        return found

    async def _unusable(self, agent: Agent) -> str | None:
        try:
            _, report = await self.check_endpoint(agent, None)
        except TrunklineError as exc:
            return exc.message.rstrip(".")
        # What else a check may find was so before the migration, and is better than no way back.
        failed = report.failed_gates()
        return f"{failed[0].title}: {failed[0].seen}".rstrip(".") if failed else None

    async def blockers(self, migration: AgentMigration, checks: Checks) -> list[MigrationBlocker]:
        state = migration.state
        if state is not None and state.stage == "cut_over":
            return []
        counts: dict[str, int] = {}
        checked = None
        if state is not None and state.target is not None:
            checked = checks.get((migration.agent.id, encode(state.target)))
            if state.shadow_since:
                counts = await self._store.comparisons.counts(migration.agent.id, state.shadow_since)
        return list(blockers_of(migration.agent, state, checked, counts))


def refuse_unready(blocked: Mapping[str, Sequence[MigrationBlocker]], *, force: bool) -> None:
    against = {
        name: [blocker for blocker in blockers if not force or blocker.code in NOT_FORCEABLE]
        for name, blockers in blocked.items()
    }
    findings = [
        Finding(path=name, message=blocker.message) for name, found in against.items() for blocker in found
    ]
    if not findings:
        return
    unready = [name for name, found in against.items() if found]
    first = against[unready[0]][0]
    log.info(log_events.MIGRATION_REFUSED, agents=unready, reasons=[finding.message for finding in findings])
    raise NotReady(
        f"{len(unready)} of {len(blocked)} agents are not ready for the cutover: {', '.join(unready)}."
        if len(blocked) > 1
        else f"The agent {unready[0]!r} is not ready for the cutover.",
        findings=findings,
        fix=f"{first.fix}; or override the refusal: --force --note TEXT",
    )


def target_check(checks: Sequence[CheckRecord], state: MigrationState) -> TargetCheck:
    """What the last checks say about the target, newest first, where they have learned anything about it."""
    target = state.target
    for check in checks:
        if (
            target is not None
            and (check.url, check.protocol) == (target.url, target.protocol)
            and check.at >= state.target_at
            and check.grade != NO_EVIDENCE
        ):
            kind = "active check" if check.active else "check"
            return TargetCheck(
                passed=check.passed, summary=f"grade {check.grade}, {kind} at {rfc3339(check.at)}"
            )
    return TargetCheck(
        passed=False,
        summary="it answers only messages, so there is not enough evidence without --active",
        needs_messages=True,
    )


def refuse_unusable(unusable: Mapping[str, str], asked: int) -> None:
    """Raises `NotReady` unless every source can be called; `unusable` is by the agent's name."""
    if not unusable:
        return
    names = list(unusable)
    findings = [
        Finding(path=name, message=f"The source cannot be called: {reason}.")
        for name, reason in unusable.items()
    ]
    log.info(log_events.MIGRATION_REFUSED, agents=names, reasons=[finding.message for finding in findings])
    raise NotReady(
        f"The sources of {len(names)} of {asked} agents cannot be called, so no agent was rolled back: "
        f"{', '.join(names)}."
        if asked > 1
        else f"The agent {names[0]!r} was not rolled back, because its source cannot be called: "
        f"{unusable[names[0]]}.",
        findings=findings,
        fix="Start the source again, in the protocol that it is registered with; or override the refusal: --force",
    )


def summary_of(report: AgentCheckReport) -> str:
    """What a check has found, in a few words."""
    failures = report.failures()
    if not failures:
        return f"grade {report.grade}"
    first = "; ".join(f"{finding.title}: {finding.seen}" for finding in failures[:3])
    more = f" and {len(failures) - 3} more" if len(failures) > 3 else ""
    return f"grade {report.grade}, {first}{more}"
