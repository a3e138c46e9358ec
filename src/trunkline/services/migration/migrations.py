"""
Migrations of agents: the operations that a person, or a bridge that rolls back, can ask for.

Every change is one agent event, decided and written while no other transaction can add one, so that two callers never
overwrite each other. Which endpoint a run in progress calls depends on its routing version alone
(`agents.migration.routing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import msgspec

from trunkline.agents import Agent
from trunkline.agents.check_reports import AgentCheckReport
from trunkline.agents.migration import (
    DEFAULT_LIMITS,
    MigrationStage,
    MigrationState,
    ReadinessAttestation,
    RolloutLimits,
    transitions,
)
from trunkline.agents.migration.transitions import LimitChanges, RolloutRequest
from trunkline.clock import seconds_between
from trunkline.errors import Conflict, Finding, Invalid
from trunkline.services.agents.cache import AgentCache
from trunkline.services.agents.checks import CheckAgent
from trunkline.services.agents.drift import DriftRecorder
from trunkline.services.agents.specs import raise_if_any
from trunkline.services.migration.readiness import CutoverReadiness, refuse_unready
from trunkline.services.migration.repository import (
    MAX_TEXT_CHARACTERS,
    AgentMigration,
    BulkChangeResult,
    ChangeReason,
    MigrationRepository,
    RefusedChange,
    StageChange,
    state_of_target,
    unchanged,
    write_changes,
)
from trunkline.services.migration.routing_table import FRESH_FOR, RoutingTable
from trunkline.services.migration.targets import RequestedTarget, checks_of, resolve_target
from trunkline.services.operations.audit_log import audit_entry
from trunkline.stores.base import Store, Transaction
from trunkline.stores.port.agents.agent_events import AgentEvent, CheckRecord
from trunkline.telemetry.metrics import Metrics

# By then every process knows of a cutover, and every run accepted without knowing it is in the store.
_KNOWN_BY_ALL = FRESH_FOR + timedelta(seconds=3)
# Each limit with the least and the most that it can be.
_RANGES = (
    ("disagreement", 0, 1),
    ("comparisons", 0, 1_000),
    ("error_rate", 0, 1),
    ("window", 1, 1_000),
    ("calls", 1, 1_000),
    ("slowdown", 1, 1_000),
    ("slowest_ms", 1, 86_400_000),
)


class Migrations:
    def __init__(
        self,
        store: Store,
        agent_cache: AgentCache,
        routes: RoutingTable,
        drifts: DriftRecorder,
        check: CheckAgent,
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._repository = MigrationRepository(store, agent_cache, routes, metrics)
        self._readiness = CutoverReadiness(store, drifts, check)

    # --- attest, shadow, canary

    async def attest(
        self, name: str, note: str, target: RequestedTarget | None, reason: ChangeReason
    ) -> StageChange:
        """Records a person's confirmation that the target is ready, for what no program can check."""
        if not note.strip() or len(note) > MAX_TEXT_CHARACTERS:
            message = f"must describe what was done, in at most {MAX_TEXT_CHARACTERS} characters"
            raise_if_any([Finding(path="note", message=message)])

        checks = await checks_of(self._store.checks, (await self._repository.get(name)).agent)

        def decide(tx: Transaction, migration: AgentMigration, event: int) -> MigrationState:
            del event
            aim = None if target is None else resolve_target(migration.agent, migration.state, target, checks)
            ready = ReadinessAttestation(who=reason.who, at=tx.now, note=note)
            return transitions.attested(migration.state, ready, aim, tx.now)

        return await self._change_one(name, msgspec.structs.replace(reason, why=reason.why or note), decide)

    async def shadow(
        self, name: str, target: RequestedTarget, percent: float, limits: LimitChanges, reason: ChangeReason
    ) -> StageChange:
        """Sends the same input to the target as well; its answers are compared and otherwise dropped."""
        checks = await checks_of(self._store.checks, (await self._repository.get(name)).agent)

        def decide(tx: Transaction, migration: AgentMigration, event: int) -> MigrationState:
            if not migration.agent.options.repeatable:
                raise Conflict(
                    f"The agent {migration.agent.name!r} is not marked as safe to call twice, so it "
                    "cannot be shadowed.",
                    fix=f"If repeated calls are safe: trunkline agents update {migration.agent.name} "
                    "--repeatable. Otherwise, send a share of the runs to the target: trunkline agents "
                    f"migrate canary {migration.agent.name}.",
                )
            return transitions.shadowed(
                migration.state, _rollout_request(migration, target, percent, limits, checks), event, tx.now
            )

        return await self._change_one(name, reason, decide)

    async def canary(
        self, name: str, target: RequestedTarget, percent: float, limits: LimitChanges, reason: ChangeReason
    ) -> StageChange:
        """A share of the runs that start from now on calls the target."""
        checks = await checks_of(self._store.checks, (await self._repository.get(name)).agent)

        def decide(tx: Transaction, migration: AgentMigration, event: int) -> MigrationState:
            del event
            return transitions.on_canary(
                migration.state, _rollout_request(migration, target, percent, limits, checks), tx.now
            )

        return await self._change_one(name, reason, decide)

    # --- the cutover

    async def cut_over(self, name: str, reason: ChangeReason, *, force: bool = False) -> StageChange:
        """All runs that start from now on call the target. Raises `NotReady` with every blocker."""
        changes = await self._cut_over([await self._repository.get(name)], reason, force=force)
        return changes[0]

    async def cut_over_all(self, reason: ChangeReason, *, force: bool = False) -> list[StageChange]:
        """Every agent that speaks Simple A2A, or is in the middle of a migration; all of them, or none."""
        wanted = [
            migration for migration in await self._repository.all() if migration.is_part_of_bulk_cutover
        ]
        if not wanted:
            raise Conflict(
                "There is no agent to cut over.",
                fix="See the state of all agents: trunkline agents migrate plan",
            )
        return await self._cut_over(wanted, reason, force=force, all_of_them=True)

    async def _cut_over(
        self,
        migrations: Sequence[AgentMigration],
        reason: ChangeReason,
        *,
        force: bool,
        all_of_them: bool = False,
    ) -> list[StageChange]:
        if force and not reason.why.strip():
            raise_if_any([Finding(path="why", message="must be given when a refusal is overridden")])
        checks = await self._readiness.check_targets(migrations)
        async with self._store.transaction() as tx:
            await tx.agent_events.lock()
            if all_of_them:
                present = [
                    migration
                    for migration in await self._repository.all(tx)
                    if migration.is_part_of_bulk_cutover
                ]
            else:
                present = [await self._repository.get(migration.agent.id, tx) for migration in migrations]
            blocked = {
                migration.agent.name: await self._readiness.blockers(migration, checks)
                for migration in present
            }
            going = [
                migration
                for migration in present
                if migration.state is not None and migration.state.stage != "cut_over"
            ]
            refuse_unready(blocked, force=force)
            first = await tx.agent_events.last_id() + 1
            states = {
                migration.agent.id: transitions.cut_over(
                    state_of_target(migration), first + place, forced=bool(blocked[migration.agent.name])
                )
                for place, migration in enumerate(going)
            }
            changes = await write_changes(tx, going, states, reason)
        await self._repository.report(changes)
        return changes or [unchanged(migration) for migration in present]

    async def check(self, name: str, *, active: bool = False) -> tuple[CheckRecord, AgentCheckReport]:
        """Checks the target; the registered endpoint, if the agent is not migrating."""
        migration = await self._repository.get(name)
        state, target = migration.state, None
        if state is not None and state.stage != "finished":
            target = state.target
        if active:
            # Before the check: the agent may act on its messages whether we live to see the report or not.
            async with self._store.transaction() as tx:
                protocol = None if target is None else target.protocol
                await tx.audit.put([audit_entry("agent", "check", migration.agent.name, protocol=protocol)])
        return await self._readiness.check_endpoint(migration.agent, target, active=active)

    # --- roll back, finish

    async def roll_back(self, name: str, reason: ChangeReason, *, force: bool = False) -> StageChange:
        """New runs call the source again, running ones keep their endpoint. Raises `NotReady` for a dead source."""
        _check_why(reason)
        if not force:
            await self._readiness.refuse_dead_sources([await self._repository.get(name)])
        async with self._store.transaction() as tx:
            await tx.agent_events.lock()
            migration = await self._repository.get(name, tx)
            state = migration.state
            if state is not None and state.stage == "rolled_back":
                return unchanged(migration)
            if state is None or not state.is_open:
                raise _cannot_roll_back(migration)
            back = transitions.rolled_back(state)
            changes = await write_changes(tx, [migration], {migration.agent.id: back}, reason)
        await self._repository.report(changes)
        return changes[0]

    async def roll_back_if(self, agent_id: str, *, who: str, why: str, only_if: int) -> bool:
        """
        Rolls back because the target is not good enough.

        False: the last event of the agent's migration is no longer `only_if`, or its stage cannot be rolled back.
        Raises `NotReady` where the source cannot be called: a bad target is better than none.
        """
        await self._readiness.refuse_dead_sources([await self._repository.get(agent_id)])
        async with self._store.transaction() as tx:
            await tx.agent_events.lock()
            migration = await self._repository.get(agent_id, tx)
            if (
                migration.event is None
                or migration.event.id != only_if
                or migration.state is None
                or not migration.state.is_open
            ):
                return False
            back = transitions.rolled_back(migration.state)
            changes = await write_changes(
                tx, [migration], {migration.agent.id: back}, ChangeReason(who=who, why=why)
            )
        await self._repository.report(changes)
        return True

    async def roll_back_all(self, reason: ChangeReason, *, force: bool = False) -> BulkChangeResult:
        """Rolls back every agent that still has a source, or none, as `roll_back`; names those that have none."""
        _check_why(reason)
        if not force:
            await self._readiness.refuse_dead_sources(await self._repository.all())
        async with self._store.transaction() as tx:
            await tx.agent_events.lock()
            migrations = await self._repository.all(tx)
            back = {
                migration.agent.id: transitions.rolled_back(migration.state)
                for migration in migrations
                if migration.state is not None and migration.state.is_open
            }
            changes = await write_changes(
                tx, [migration for migration in migrations if migration.agent.id in back], back, reason
            )
        await self._repository.report(changes)
        return BulkChangeResult(
            changed=changes or [unchanged(migration) for migration in _at(migrations, "rolled_back")],
            refused=[],
            left_alone=[
                _refusal(migration.agent, _cannot_roll_back(migration))
                for migration in _at(migrations, "finished")
            ],
        )

    async def finish(self, name: str, reason: ChangeReason) -> StageChange:
        """Registers the target as the agent's own endpoint, irrevocably. Raises `Conflict`."""
        async with self._store.transaction() as tx:
            await tx.agent_events.lock()
            change = await self._finish(tx, await self._repository.get(name, tx), reason)
        await self._repository.report([change])
        return change

    async def finish_all(self, reason: ChangeReason) -> BulkChangeResult:
        """Finishes every agent that has been cut over; those that have to wait are refused."""
        changed: list[StageChange] = []
        refused: list[RefusedChange] = []
        async with self._store.transaction() as tx:
            await tx.agent_events.lock()
            for migration in _at(await self._repository.all(tx), "cut_over"):
                try:
                    changed.append(await self._finish(tx, migration, reason))
                except Conflict as exc:
                    refused.append(_refusal(migration.agent, exc))
        await self._repository.report(changed)
        return BulkChangeResult(changed=changed, refused=refused, left_alone=[])

    async def _finish(self, tx: Transaction, migration: AgentMigration, reason: ChangeReason) -> StageChange:
        agent, state = migration.agent, migration.state
        if state is None or state.stage != "cut_over" or state.target is None or migration.event is None:
            raise Conflict(
                f"The agent {agent.name!r} has not been cut over.",
                fix=f"See its migration stage: trunkline agents migrate status {agent.name}",
            )
        await self._refuse_while_old_runs_go_on(tx, agent, state, migration.event)
        row = msgspec.structs.replace(
            agent,
            url=state.target.url,
            protocol=state.target.protocol,
            protocol_config=state.target.protocol_config,
            options=msgspec.structs.replace(agent.options, endpoint_override=None),
            dialect=None,
            version=agent.version + 1,
            updated_at=tx.now,
        )
        if not await tx.agents.update(row, agent.version):
            raise Conflict(f"The agent {agent.name!r} was changed at the same time.", fix="Try again.")
        await tx.comparisons.delete_calls(agent.id)
        changes = await write_changes(
            tx, [migration], {agent.id: transitions.finished(state, row.version)}, reason
        )
        return changes[0]

    async def _refuse_while_old_runs_go_on(
        self, tx: Transaction, agent: Agent, state: MigrationState, event: AgentEvent
    ) -> None:
        age = seconds_between(event.at, tx.now)
        if event.id == state.cut_over_at and age < _KNOWN_BY_ALL.total_seconds():
            raise Conflict(
                f"The agent {agent.name!r} was cut over {age:.0f} s ago, and some processes may not "
                "know it yet.",
                fix=f"Try again in {_KNOWN_BY_ALL.total_seconds():.0f} s.",
            )
        older = await self._store.runs.unfinished_before(state.cut_over_at)
        if older:
            raise Conflict(
                f"{older} unfinished runs started before the agent {agent.name!r} was cut over and "
                "may still call its source.",
                fix="Wait for them to finish, or cancel them. They are listed by: trunkline runs list "
                "--status RUNNING --status WAITING --status PAUSED",
            )

    # --- one change

    async def _change_one(
        self,
        name: str,
        reason: ChangeReason,
        decide: Callable[[Transaction, AgentMigration, int], MigrationState],
    ) -> StageChange:
        async with self._store.transaction() as tx:
            await tx.agent_events.lock()
            migration = await self._repository.get(name, tx)
            state = decide(tx, migration, await tx.agent_events.last_id() + 1)
            changes = await write_changes(tx, [migration], {migration.agent.id: state}, reason)
        await self._repository.report(changes)
        return changes[0]


def _at(migrations: Iterable[AgentMigration], stage: MigrationStage) -> list[AgentMigration]:
    return [
        migration
        for migration in migrations
        if migration.state is not None and migration.state.stage == stage
    ]


def _rollout_request(
    migration: AgentMigration,
    target: RequestedTarget,
    percent: float,
    changes: LimitChanges,
    checks: Sequence[CheckRecord],
) -> RolloutRequest:
    limits = transitions.with_limits(
        DEFAULT_LIMITS if migration.state is None else migration.state.limits, changes
    )
    raise_if_any([*_check_percent(percent), *_check_limits(limits)])
    return RolloutRequest(
        agent=migration.agent.name,
        target=resolve_target(migration.agent, migration.state, target, checks),
        percent=percent,
        limits=limits,
    )


def _check_percent(percent: float) -> Iterable[Finding]:
    if not 0 < percent <= 100:
        yield Finding(path="percent", message="must be greater than 0 and at most 100")


def _check_limits(limits: RolloutLimits) -> Iterable[Finding]:
    for name, least, most in _RANGES:
        value = getattr(limits, name)
        if value is not None and not least <= value <= most:
            yield Finding(path=f"limits.{name}", message=f"must be from {least} to {most}")
    if limits.calls > limits.window:
        yield Finding(
            path="limits.calls",
            message="must not be greater than limits.window, because it could never be reached",
        )


def _check_why(reason: ChangeReason) -> None:
    if not reason.why.strip():
        raise Invalid(
            "A rollback needs a reason.",
            findings=[Finding(path="why", message="must be given")],
            fix="Give a reason: --note TEXT.",
        )


def _cannot_roll_back(migration: AgentMigration) -> Conflict:
    name, state = migration.agent.name, migration.state
    if state is not None and state.stage == "finished":
        return Conflict(
            f"The source of {name!r} no longer exists. Its migration is finished, and the agent is "
            "registered with the target.",
            fix="If the former agent still runs, register its url and protocol again (PATCH "
            f"/api/v1/agents/{name}).",
        )
    return Conflict(
        f"There is nothing to roll back: all runs call the source of {name!r}.",
        fix=f"See its migration stage: trunkline agents migrate status {name}",
    )


def _refusal(agent: Agent, error: Conflict) -> RefusedChange:
    return RefusedChange(agent=agent.name, message=error.message, fix=error.fix)
