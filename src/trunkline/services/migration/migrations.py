"""
Migrations of agents: the operations that a person, or a bridge that rolls back, can ask for.

Every change is one agent event, decided and written while no other transaction can add one, so that two callers never
overwrite each other. Which endpoint a run in progress calls depends on its routing version alone
(`agents.migration.routing`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

import msgspec
import structlog

from trunkline.agents import Agent
from trunkline.agents.check_reports import AgentCheckReport, CheckTarget
from trunkline.agents.migration import (
    DEFAULT_LIMITS,
    MigrationStage,
    MigrationState,
    ReadinessAttestation,
    RolloutLimits,
    TargetEndpoint,
    transitions,
)
from trunkline.agents.migration.blockers import (
    NOT_FORCEABLE,
    Blocker,
    TargetCheck,
    blockers_of,
    protocol_in_use,
)
from trunkline.agents.migration.transitions import LimitChanges, RolloutRequest
from trunkline.clock import seconds_between
from trunkline.errors import Conflict, Finding, Invalid, NotFound, NotReady, TrunklineError
from trunkline.jsontypes import encode
from trunkline.services.agents.cache import AgentCache
from trunkline.services.agents.drift import DriftRecorder
from trunkline.services.agents.specs import raise_if_any
from trunkline.services.migration.routing_table import FRESH_FOR, RoutingTable
from trunkline.services.migration.states import decode_migration, encode_migration
from trunkline.services.migration.targets import RequestedTarget, resolve_target
from trunkline.services.operations.audit_log import audit_entry
from trunkline.stores.base import Store, Transaction
from trunkline.stores.port.agent_events import AgentEvent, CheckRecord, NewAgentEvent
from trunkline.stores.port.operations import NewAuditEntry
from trunkline.telemetry import names
from trunkline.telemetry.metrics import Metrics

log = structlog.stdlib.get_logger()

# By the agent's id and the target as JSON.
Checks: TypeAlias = dict[tuple[str, bytes], TargetCheck]
CheckAgent: TypeAlias = Callable[[Agent, CheckTarget | None], Awaitable[AgentCheckReport]]

# Where nobody has to show a key and nobody says who they are.
SOMEBODY = "local"
NO_REASON = "no reason given"
MOST_WORDS = 2_000
_LONGEST_NAME = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PAGE = 1_000
# Of one request; each check is some requests to one agent.
_CHECKS_AT_A_TIME = 8
# By then every process knows of a cutover, and every run accepted without knowing it is in the store.
_KNOWN_BY_ALL = FRESH_FOR + timedelta(seconds=3)
_SIMPLE = "simple-a2a"
# What a person does, by the stage that it leads to.
_ACTIONS: dict[MigrationStage, str] = {"cut_over": "cutover", "rolled_back": "rollback", "finished": "finish"}
_SETTLED = frozenset({"cut_over", "finished"})
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


class ChangeReason(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks for a change, and why."""

    who: str = SOMEBODY
    why: str = ""


def change_reason(who: str | None, why: str) -> ChangeReason:
    """Raises `Invalid` for texts that are too long or not printable."""
    findings: list[Finding] = []
    if len(why) > MOST_WORDS:
        findings.append(Finding(path="why", message=f"must have at most {MOST_WORDS} characters"))
    if who is not None and (len(who) > _LONGEST_NAME or _CONTROL.search(who)):
        findings.append(
            Finding(path="who", message=f"must be a name of at most {_LONGEST_NAME} characters on one line")
        )
    raise_if_any(findings)
    return ChangeReason(who=(who or "").strip() or SOMEBODY, why=why)


class StageChange(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    state: MigrationState
    # None: it was so already.
    event: AgentEvent | None = None


class RefusedChange(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    message: str
    fix: str


class BulkChangeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a change of all agents, where each may succeed or fail on its own."""

    changed: list[StageChange]
    # Agents that should have changed and could not.
    refused: list[RefusedChange]
    # Agents that the change does not apply to, although one might expect it.
    left_alone: list[RefusedChange]


class _AgentMigration(msgspec.Struct, frozen=True, kw_only=True):
    """An agent and the state of its migration."""

    agent: Agent
    event: AgentEvent | None
    state: MigrationState | None

    @property
    def is_part_of_bulk_cutover(self) -> bool:
        """Whether a cutover of all agents includes this one."""
        state = self.state
        if state is not None and state.stage in {"planned", "shadow", "canary"}:
            return True
        return protocol_in_use(self.agent) in {_SIMPLE, None} and (state is None or state.stage != "cut_over")


class Migrations:
    def __init__(
        self,
        store: Store,
        directory: AgentCache,
        routes: RoutingTable,
        drifts: DriftRecorder,
        check: CheckAgent,
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._directory = directory
        self._routing = routes
        self._drifts = drifts
        self._check = check
        self._metrics = metrics

    # --- attest, shadow, canary

    async def attest(
        self, name: str, note: str, target: RequestedTarget | None, reason: ChangeReason
    ) -> StageChange:
        """Records a person's confirmation that the target is ready, for what no program can check."""
        if not note.strip() or len(note) > MOST_WORDS:
            message = f"must say what was done, in at most {MOST_WORDS} characters"
            raise_if_any([Finding(path="note", message=message)])

        def decide(tx: Transaction, migration: _AgentMigration, event: int) -> MigrationState:
            del event
            aim = None if target is None else resolve_target(migration.agent, migration.state, target)
            ready = ReadinessAttestation(who=reason.who, at=tx.now, note=note)
            return transitions.attested(migration.state, ready, aim, tx.now)

        return await self._change_one(name, msgspec.structs.replace(reason, why=reason.why or note), decide)

    async def shadow(
        self, name: str, target: RequestedTarget, percent: float, limits: LimitChanges, reason: ChangeReason
    ) -> StageChange:
        """Sends the same input to the target as well; its answers are compared and otherwise dropped."""

        def decide(tx: Transaction, migration: _AgentMigration, event: int) -> MigrationState:
            if not migration.agent.options.repeatable:
                raise Conflict(
                    f"The agent {migration.agent.name!r} is not declared safe to call twice.",
                    fix="If it is, register it with repeatable: true"
                    f' (PATCH /api/v1/agents/{migration.agent.name}: {{"repeatable": true}});'
                    " otherwise try the new side on some runs: trunkline agents migrate canary.",
                )
            return transitions.shadowed(
                migration.state, _rollout_request(migration, target, percent, limits), event, tx.now
            )

        return await self._change_one(name, reason, decide)

    async def canary(
        self, name: str, target: RequestedTarget, percent: float, limits: LimitChanges, reason: ChangeReason
    ) -> StageChange:
        """A share of the runs that start from now on calls the target."""

        def decide(tx: Transaction, migration: _AgentMigration, event: int) -> MigrationState:
            del event
            return transitions.on_canary(
                migration.state, _rollout_request(migration, target, percent, limits), tx.now
            )

        return await self._change_one(name, reason, decide)

    # --- the cutover

    async def cut_over(self, name: str, reason: ChangeReason, *, force: bool = False) -> StageChange:
        """All runs that start from now on call the target. Raises `NotReady` with every blocker."""
        changes = await self._cut_over([await self._found(name)], reason, force=force)
        return changes[0]

    async def cut_over_all(self, reason: ChangeReason, *, force: bool = False) -> list[StageChange]:
        """Every agent that speaks Simple A2A, or is in the middle of a migration; all of them, or none."""
        wanted = [migration for migration in await self._all() if migration.is_part_of_bulk_cutover]
        if not wanted:
            raise Conflict("There is no agent to cut over.", fix="See: trunkline agents migrate plan")
        return await self._cut_over(wanted, reason, force=force, all_of_them=True)

    async def _cut_over(
        self,
        migrations: Sequence[_AgentMigration],
        reason: ChangeReason,
        *,
        force: bool,
        all_of_them: bool = False,
    ) -> list[StageChange]:
        if force and not reason.why.strip():
            raise_if_any([Finding(path="why", message="must be given where a refusal is overruled")])
        checks = await self._check_targets(migrations)
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            if all_of_them:
                present = [
                    migration for migration in await self._all(tx) if migration.is_part_of_bulk_cutover
                ]
            else:
                present = [await self._found(migration.agent.id, tx) for migration in migrations]
            blocked = {migration.agent.name: await self._blockers(migration, checks) for migration in present}
            going = [
                migration
                for migration in present
                if migration.state is not None and migration.state.stage != "cut_over"
            ]
            self._refuse(blocked, force=force)
            first = await tx.last_agent_event() + 1
            states = {
                migration.agent.id: transitions.cut_over(
                    _targeted(migration), first + place, forced=bool(blocked[migration.agent.name])
                )
                for place, migration in enumerate(going)
            }
            changes = await _write(tx, going, states, reason)
        await self._tell(changes)
        return changes or [_unchanged(migration) for migration in present]

    def _refuse(self, blocked: Mapping[str, Sequence[Blocker]], *, force: bool) -> None:
        against = {
            name: [blocker for blocker in blockers if not force or blocker.code in NOT_FORCEABLE]
            for name, blockers in blocked.items()
        }
        findings = [
            Finding(path=name, message=blocker.message)
            for name, found in against.items()
            for blocker in found
        ]
        if not findings:
            return
        unready = [name for name, found in against.items() if found]
        first = against[unready[0]][0]
        log.info(names.MIGRATION_REFUSED, agents=unready, reasons=[finding.message for finding in findings])
        raise NotReady(
            f"{len(unready)} of {len(blocked)} agents are not ready for the cutover: {', '.join(unready)}."
            if len(blocked) > 1
            else f"The agent {unready[0]!r} is not ready for the cutover.",
            findings=findings,
            fix=f"{first.fix}; or overrule it: --force --why TEXT",
        )

    async def _check_targets(self, migrations: Iterable[_AgentMigration]) -> Checks:
        """Checks the targets now, without sending them work."""
        room = asyncio.Semaphore(_CHECKS_AT_A_TIME)
        found: Checks = {}

        async def look(agent: Agent, target: TargetEndpoint) -> None:
            async with room:
                found[agent.id, encode(target)] = await self._checked(agent, target)

        async with asyncio.TaskGroup() as group:
            for migration in migrations:
                if (
                    migration.state is not None
                    and migration.state.target
                    and migration.state.stage not in _SETTLED
                ):
                    group.create_task(look(migration.agent, migration.state.target))
        return found

    async def _checked(self, agent: Agent, target: TargetEndpoint) -> TargetCheck:
        try:
            _, report = await self.check_endpoint(agent, target)
        except TrunklineError as exc:
            return TargetCheck(passed=False, summary=exc.message.rstrip("."))
        return TargetCheck(passed=report.passed, summary=summary_of(report))

    async def check(self, name: str) -> tuple[CheckRecord, AgentCheckReport]:
        """Checks the target; the registered endpoint, if the agent is not migrating."""
        migration = await self._found(name)
        state = migration.state
        if state is not None and state.target is not None and state.stage != "finished":
            return await self.check_endpoint(migration.agent, state.target)
        return await self.check_endpoint(migration.agent, None)

    async def check_endpoint(
        self, agent: Agent, target: TargetEndpoint | None
    ) -> tuple[CheckRecord, AgentCheckReport]:
        wanted = None
        if target is not None:
            wanted = CheckTarget(
                url=target.url, protocol=target.protocol, protocol_config=target.protocol_config
            )
        report = await self._check(agent, wanted)
        return await self._drifts.record_check(agent, report, wanted), report

    async def _blockers(self, migration: _AgentMigration, checks: Checks) -> list[Blocker]:
        state = migration.state
        if state is not None and state.stage == "cut_over":
            return []
        counts: dict[str, int] = {}
        checked = None
        if state is not None and state.target is not None:
            checked = checks.get((migration.agent.id, encode(state.target)))
            if state.shadow_since:
                counts = await self._store.comparison_counts(migration.agent.id, state.shadow_since)
        return list(blockers_of(migration.agent, state, checked, counts))

    # --- roll back, finish

    async def roll_back(self, name: str, reason: ChangeReason) -> StageChange:
        """Runs that start from now on call the source again; runs in progress keep their endpoint."""
        _check_why(reason)
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            migration = await self._found(name, tx)
            state = migration.state
            if state is not None and state.stage == "rolled_back":
                return _unchanged(migration)
            if state is None or not state.is_open:
                raise _cannot_roll_back(migration)
            back = transitions.rolled_back(state)
            changes = await _write(tx, [migration], {migration.agent.id: back}, reason)
        await self._tell(changes)
        return changes[0]

    async def roll_back_if(self, agent_id: str, *, who: str, why: str, only_if: int) -> bool:
        """
        Rolls back because the target is not good enough.

        False: the last event of the agent's migration is no longer `only_if`, or its stage cannot be rolled back.
        """
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            migration = await self._found(agent_id, tx)
            if (
                migration.event is None
                or migration.event.id != only_if
                or migration.state is None
                or not migration.state.is_open
            ):
                return False
            back = transitions.rolled_back(migration.state)
            changes = await _write(
                tx, [migration], {migration.agent.id: back}, ChangeReason(who=who, why=why)
            )
        await self._tell(changes)
        return True

    async def roll_back_all(self, reason: ChangeReason) -> BulkChangeResult:
        """Rolls back every agent that still has a source, and names those that have none."""
        _check_why(reason)
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            migrations = await self._all(tx)
            back = {
                migration.agent.id: transitions.rolled_back(migration.state)
                for migration in migrations
                if migration.state is not None and migration.state.is_open
            }
            changes = await _write(
                tx, [migration for migration in migrations if migration.agent.id in back], back, reason
            )
        await self._tell(changes)
        return BulkChangeResult(
            changed=changes or [_unchanged(migration) for migration in _at(migrations, "rolled_back")],
            refused=[],
            left_alone=[
                _refusal(migration.agent, _cannot_roll_back(migration))
                for migration in _at(migrations, "finished")
            ],
        )

    async def finish(self, name: str, reason: ChangeReason) -> StageChange:
        """Registers the target as the agent's own endpoint, irrevocably. Raises `Conflict`."""
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            change = await self._finish(tx, await self._found(name, tx), reason)
        await self._tell([change])
        return change

    async def finish_all(self, reason: ChangeReason) -> BulkChangeResult:
        """Finishes every agent that has been cut over; those that have to wait are refused."""
        changed: list[StageChange] = []
        refused: list[RefusedChange] = []
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            for migration in _at(await self._all(tx), "cut_over"):
                try:
                    changed.append(await self._finish(tx, migration, reason))
                except Conflict as exc:
                    refused.append(_refusal(migration.agent, exc))
        await self._tell(changed)
        return BulkChangeResult(changed=changed, refused=refused, left_alone=[])

    async def _finish(self, tx: Transaction, migration: _AgentMigration, reason: ChangeReason) -> StageChange:
        agent, state = migration.agent, migration.state
        if state is None or state.stage != "cut_over" or state.target is None or migration.event is None:
            raise Conflict(
                f"The agent {agent.name!r} has not been cut over.",
                fix=f"See where it stands: trunkline agents migrate status {agent.name}",
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
        if not await tx.update_agent(row, agent.version):
            raise Conflict(f"The agent {agent.name!r} was changed at the same moment.", fix="Try again.")
        await tx.forget_sides(agent.id)
        changes = await _write(tx, [migration], {agent.id: transitions.finished(state, row.version)}, reason)
        return changes[0]

    async def _refuse_while_old_runs_go_on(
        self, tx: Transaction, agent: Agent, state: MigrationState, event: AgentEvent
    ) -> None:
        age = seconds_between(event.at, tx.now)
        if event.id == state.cut_over_at and age < _KNOWN_BY_ALL.total_seconds():
            raise Conflict(
                f"The agent {agent.name!r} was cut over {age:.0f} s ago: not every process knows of it yet.",
                fix=f"Try again in {_KNOWN_BY_ALL.total_seconds():.0f} s.",
            )
        older = await self._store.unfinished_runs_before(state.cut_over_at)
        if older:
            raise Conflict(
                f"{older} unfinished runs were accepted before the agent {agent.name!r} was cut over and may still"
                " call its old side.",
                fix="Wait for them, or cancel them: trunkline runs list --status RUNNING (and WAITING, PAUSED).",
            )

    # --- one change

    async def _change_one(
        self,
        name: str,
        reason: ChangeReason,
        decide: Callable[[Transaction, _AgentMigration, int], MigrationState],
    ) -> StageChange:
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            migration = await self._found(name, tx)
            state = decide(tx, migration, await tx.last_agent_event() + 1)
            changes = await _write(tx, [migration], {migration.agent.id: state}, reason)
        await self._tell(changes)
        return changes[0]

    async def _tell(self, changes: Collection[StageChange]) -> None:
        """Called when they are committed: logs, counts, and refreshes what is cached."""
        for change in changes:
            event = change.event
            if event is not None:
                self._directory.forget(change.agent)
                self._metrics.migration_changes.labels(change.agent, change.state.stage).inc()
                log.info(
                    names.MIGRATION_CHANGED,
                    agent=change.agent,
                    stage=change.state.stage,
                    percent=change.state.percent,
                    who=event.who,
                    why=event.why,
                    event_id=event.id,
                )
        if changes:
            await self._routing.refresh()

    async def _found(self, name: str, tx: Transaction | None = None) -> _AgentMigration:
        """As it is now; inside a transaction that holds the lock, as it stays."""
        agent = await self._store.agent(name)
        if agent is None:
            raise NotFound(f"There is no agent {name!r}.", fix="See which there are: trunkline agents list.")
        latest = await (tx or self._store).latest_migrations([agent.id])
        return _agent_migration(agent, latest)

    async def _all(self, tx: Transaction | None = None) -> list[_AgentMigration]:
        migrations: list[_AgentMigration] = []
        after = None
        while page := await self._store.agents(limit=_PAGE, after=after):
            latest = await (tx or self._store).latest_migrations([agent.id for agent in page])
            migrations += [_agent_migration(agent, latest) for agent in page]
            after = page[-1].name
        return migrations


def summary_of(report: AgentCheckReport) -> str:
    """What a check has found, in a few words."""
    failures = report.failures()
    if not failures:
        return f"grade {report.grade}"
    first = "; ".join(f"{finding.title}: {finding.seen}" for finding in failures[:3])
    more = f" and {len(failures) - 3} more" if len(failures) > 3 else ""
    return f"grade {report.grade}, {first}{more}"


def _agent_migration(agent: Agent, latest: Mapping[str, AgentEvent]) -> _AgentMigration:
    event = latest.get(agent.id)
    return _AgentMigration(agent=agent, event=event, state=decode_migration(event))


def _at(migrations: Iterable[_AgentMigration], stage: MigrationStage) -> list[_AgentMigration]:
    return [
        migration
        for migration in migrations
        if migration.state is not None and migration.state.stage == stage
    ]


def _rollout_request(
    migration: _AgentMigration, target: RequestedTarget, percent: float, changes: LimitChanges
) -> RolloutRequest:
    limits = transitions.with_limits(
        DEFAULT_LIMITS if migration.state is None else migration.state.limits, changes
    )
    raise_if_any([*_check_percent(percent), *_check_limits(limits)])
    return RolloutRequest(
        target=resolve_target(migration.agent, migration.state, target), percent=percent, limits=limits
    )


def _check_percent(percent: float) -> Iterable[Finding]:
    if not 0 < percent <= 100:
        yield Finding(path="percent", message="must be more than 0 and at most 100")


def _check_limits(limits: RolloutLimits) -> Iterable[Finding]:
    for name, least, most in _RANGES:
        value = getattr(limits, name)
        if value is not None and not least <= value <= most:
            yield Finding(path=f"limits.{name}", message=f"must be from {least} to {most}")
    if limits.calls > limits.window:
        yield Finding(
            path="limits.calls", message="must not be more than limits.window: it would never be reached"
        )


def _targeted(migration: _AgentMigration) -> MigrationState:
    assert migration.state is not None  # noqa: S101 - without one it is blocked, forced or not
    return migration.state


async def _write(
    tx: Transaction,
    migrations: Sequence[_AgentMigration],
    states: Mapping[str, MigrationState],
    reason: ChangeReason,
) -> list[StageChange]:
    events = await tx.put_agent_events(
        [
            NewAgentEvent(
                agent_id=migration.agent.id,
                agent=migration.agent.name,
                kind="migration",
                who=reason.who,
                why=reason.why.strip() or NO_REASON,
                data=encode_migration(states[migration.agent.id]),
            )
            for migration in migrations
        ]
    )
    await tx.put_audit([_audited(migration, states[migration.agent.id], reason) for migration in migrations])
    return [StageChange(agent=event.agent, state=states[event.agent_id], event=event) for event in events]


def _audited(migration: _AgentMigration, state: MigrationState, reason: ChangeReason) -> NewAuditEntry:
    before = None if migration.state is None else migration.state.ready
    attests = state.ready is not None and state.ready != before
    return audit_entry(
        "migration",
        "attest" if attests else _ACTIONS.get(state.stage, state.stage),
        migration.agent.name,
        # A migration has a name also where no keys are in use: the caller may give one, or it is a bridge.
        who=None if reason.who == SOMEBODY else reason.who,
        stage=state.stage,
        percent=state.percent,
        why=reason.why.strip() or None,
    )


def _unchanged(migration: _AgentMigration) -> StageChange:
    return StageChange(agent=migration.agent.name, state=_targeted(migration))


def _check_why(reason: ChangeReason) -> None:
    if not reason.why.strip():
        raise Invalid(
            "A rollback needs a reason.",
            findings=[Finding(path="why", message="must be given")],
            fix="Say why, for those who read it later: --why TEXT.",
        )


def _cannot_roll_back(migration: _AgentMigration) -> Conflict:
    name, state = migration.agent.name, migration.state
    if state is not None and state.stage == "finished":
        return Conflict(
            f"The old side of {name!r} is gone: its migration was finished, and the agent's registration is the new"
            " side.",
            fix="Register the agent with its former url and protocol again (PATCH /api/v1/agents/…), if that side"
            " still runs.",
        )
    return Conflict(
        f"There is nothing to roll back: {name!r} is called on its old side only.",
        fix=f"See where it stands: trunkline agents migrate status {name}",
    )


def _refusal(agent: Agent, error: Conflict) -> RefusedChange:
    return RefusedChange(agent=agent.name, message=error.message, fix=error.fix)
