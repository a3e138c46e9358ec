"""
How agents move: what can be asked for, and who has asked for it.

Every change is one event of the agent, decided and written while nobody else can add one, so that two people, or a
person and a bridge that rolls back, never overwrite each other. What becomes of runs under way is decided by their
stamps alone (`agents.migration.sides`).
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
from trunkline.agents.check_reports import CheckTarget, Report
from trunkline.agents.migration import (
    DEFAULT_LIMITS,
    MigrationStage,
    MigrationState,
    ReadinessAttestation,
    RolloutLimits,
    TargetEndpoint,
    stages,
)
from trunkline.agents.migration.blockers import (
    NOT_FORCEABLE,
    Blocker,
    TargetCheck,
    blockers_of,
    protocol_in_use,
)
from trunkline.agents.migration.stages import LimitChanges, RolloutRequest
from trunkline.clock import seconds_between
from trunkline.errors import Conflict, Finding, Invalid, NotFound, NotReady, TrunklineError
from trunkline.jsontypes import encode
from trunkline.services.agent_specs import refuse
from trunkline.services.audit import audit_entry
from trunkline.services.directory import AgentDirectory
from trunkline.services.drift import Drifts
from trunkline.services.migration_targets import RequestedTarget, resolve_target
from trunkline.services.moving import encode_state, state_of
from trunkline.services.routes import FRESH_FOR, RoutingTable
from trunkline.stores.base import Store, Transaction
from trunkline.stores.port.agent_events import AgentEvent, CheckRecord, NewAgentEvent
from trunkline.stores.port.operations import NewAuditEntry
from trunkline.telemetry import names
from trunkline.telemetry.metrics import Metrics

log = structlog.stdlib.get_logger()

# By the agent's id and the target as JSON.
Checks: TypeAlias = dict[tuple[str, bytes], TargetCheck]
CheckAgent: TypeAlias = Callable[[Agent, CheckTarget | None], Awaitable[Report]]

# Where nobody has to show a key and nobody says who they are.
SOMEBODY = "local"
NO_REASON = "no reason given"
MOST_WORDS = 2_000
_LONGEST_NAME = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PAGE = 1_000
# Of one request; each check is some requests to one agent.
_CHECKS_AT_A_TIME = 8
# By then every process knows of a cutover, and whatever was accepted in ignorance of it is in the store.
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
    """Who asks for something, and why."""

    who: str = SOMEBODY
    why: str = ""


def change_reason(who: str | None, why: str) -> ChangeReason:
    """Raises `Invalid` for what nobody could read later."""
    findings: list[Finding] = []
    if len(why) > MOST_WORDS:
        findings.append(Finding(path="why", message=f"must have at most {MOST_WORDS} characters"))
    if who is not None and (len(who) > _LONGEST_NAME or _CONTROL.search(who)):
        findings.append(
            Finding(path="who", message=f"must be a name of at most {_LONGEST_NAME} characters on one line")
        )
    refuse(findings)
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
    """Of a wish for all agents, where each may go its own way."""

    changed: list[StageChange]
    # Those that were meant and could not.
    refused: list[RefusedChange]
    # Those that were not meant, though somebody might think so.
    left_alone: list[RefusedChange]


class _AgentMigration(msgspec.Struct, frozen=True, kw_only=True):
    """An agent and where its move stands."""

    agent: Agent
    event: AgentEvent | None
    state: MigrationState | None

    @property
    def is_part_of_bulk_cutover(self) -> bool:
        """Whether a cutover of all agents means this one."""
        state = self.state
        if state is not None and state.stage in {"planned", "shadow", "canary"}:
            return True
        return protocol_in_use(self.agent) in {_SIMPLE, None} and (state is None or state.stage != "cut_over")


class Migrations:
    def __init__(
        self,
        store: Store,
        directory: AgentDirectory,
        routes: RoutingTable,
        drifts: Drifts,
        check: CheckAgent,
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._directory = directory
        self._routing = routes
        self._drifts = drifts
        self._check = check
        self._metrics = metrics

    # --- what is attested and tried

    async def attest(
        self, name: str, note: str, target: RequestedTarget | None, wish: ChangeReason
    ) -> StageChange:
        """Somebody's word that the new side is ready, as far as no program can see."""
        if not note.strip() or len(note) > MOST_WORDS:
            message = f"must say what was done, in at most {MOST_WORDS} characters"
            refuse([Finding(path="note", message=message)])

        def decide(tx: Transaction, move: _AgentMigration, event: int) -> MigrationState:
            del event
            aim = None if target is None else resolve_target(move.agent, move.state, target)
            ready = ReadinessAttestation(who=wish.who, at=tx.now, note=note)
            return stages.attested(move.state, ready, aim, tx.now)

        return await self._change_one(name, msgspec.structs.replace(wish, why=wish.why or note), decide)

    async def shadow(
        self, name: str, target: RequestedTarget, percent: float, limits: LimitChanges, wish: ChangeReason
    ) -> StageChange:
        """The same input goes beside to the new side; its answers are compared and otherwise forgotten."""

        def decide(tx: Transaction, move: _AgentMigration, event: int) -> MigrationState:
            if not move.agent.options.repeatable:
                raise Conflict(
                    f"The agent {move.agent.name!r} is not declared safe to call twice.",
                    fix="If it is, register it with repeatable: true"
                    f' (PATCH /api/v1/agents/{move.agent.name}: {{"repeatable": true}});'
                    " otherwise try the new side on some runs: trunkline agents migrate canary.",
                )
            return stages.shadowed(move.state, _rollout_request(move, target, percent, limits), event, tx.now)

        return await self._change_one(name, wish, decide)

    async def canary(
        self, name: str, target: RequestedTarget, percent: float, limits: LimitChanges, wish: ChangeReason
    ) -> StageChange:
        """A share of the runs that begin from now on calls the new side."""

        def decide(tx: Transaction, move: _AgentMigration, event: int) -> MigrationState:
            del event
            return stages.on_canary(move.state, _rollout_request(move, target, percent, limits), tx.now)

        return await self._change_one(name, wish, decide)

    # --- the cutover

    async def cut_over(self, name: str, wish: ChangeReason, *, force: bool = False) -> StageChange:
        """All runs that begin from now on call the new side. Raises `NotReady` with every reason why not."""
        changes = await self._cut_over([await self._found(name)], wish, force=force)
        return changes[0]

    async def cut_over_all(self, wish: ChangeReason, *, force: bool = False) -> list[StageChange]:
        """Every agent that speaks Simple A2A, or is in the middle of a migration; all of them, or none."""
        wanted = [move for move in await self._all() if move.is_part_of_bulk_cutover]
        if not wanted:
            raise Conflict("There is no agent to cut over.", fix="See: trunkline agents migrate plan")
        return await self._cut_over(wanted, wish, force=force, all_of_them=True)

    async def _cut_over(
        self, moves: Sequence[_AgentMigration], wish: ChangeReason, *, force: bool, all_of_them: bool = False
    ) -> list[StageChange]:
        if force and not wish.why.strip():
            refuse([Finding(path="why", message="must be given where a refusal is overruled")])
        checks = await self._check_targets(moves)
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            if all_of_them:
                present = [move for move in await self._all(tx) if move.is_part_of_bulk_cutover]
            else:
                present = [await self._found(move.agent.id, tx) for move in moves]
            blocked = {move.agent.name: await self._blockers(move, checks) for move in present}
            going = [move for move in present if move.state is not None and move.state.stage != "cut_over"]
            self._refuse(blocked, force=force)
            first = await tx.last_agent_event() + 1
            states = {
                move.agent.id: stages.cut_over(
                    _targeted(move), first + place, forced=bool(blocked[move.agent.name])
                )
                for place, move in enumerate(going)
            }
            changes = await _write(tx, going, states, wish)
        await self._tell(changes)
        return changes or [_unchanged(move) for move in present]

    def _refuse(self, blocked: Mapping[str, Sequence[Blocker]], *, force: bool) -> None:
        # Nobody can be sent to nowhere.
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

    async def _check_targets(self, moves: Iterable[_AgentMigration]) -> Checks:
        """Checks now, without giving any work."""
        room = asyncio.Semaphore(_CHECKS_AT_A_TIME)
        found: Checks = {}

        async def look(agent: Agent, target: TargetEndpoint) -> None:
            async with room:
                found[agent.id, encode(target)] = await self._checked(agent, target)

        async with asyncio.TaskGroup() as group:
            for move in moves:
                if move.state is not None and move.state.target and move.state.stage not in _SETTLED:
                    group.create_task(look(move.agent, move.state.target))
        return found

    async def _checked(self, agent: Agent, target: TargetEndpoint) -> TargetCheck:
        try:
            _, report = await self.check_endpoint(agent, target)
        except TrunklineError as exc:
            return TargetCheck(passed=False, summary=exc.message.rstrip("."))
        return TargetCheck(passed=report.passed, summary=summary_of(report))

    async def check(self, name: str) -> tuple[CheckRecord, Report]:
        """Of where the agent is to move to; of where it is, if it moves nowhere."""
        move = await self._found(name)
        state = move.state
        if state is not None and state.target is not None and state.stage != "finished":
            return await self.check_endpoint(move.agent, state.target)
        return await self.check_endpoint(move.agent, None)

    async def check_endpoint(self, agent: Agent, target: TargetEndpoint | None) -> tuple[CheckRecord, Report]:
        wanted = None
        if target is not None:
            wanted = CheckTarget(
                url=target.url, protocol=target.protocol, protocol_config=target.protocol_config
            )
        report = await self._check(agent, wanted)
        return await self._drifts.record_check(agent, report, wanted), report

    async def _blockers(self, move: _AgentMigration, checks: Checks) -> list[Blocker]:
        state = move.state
        if state is not None and state.stage == "cut_over":
            return []
        counts: dict[str, int] = {}
        checked = None
        if state is not None and state.target is not None:
            checked = checks.get((move.agent.id, encode(state.target)))
            if state.shadow_since:
                counts = await self._store.comparison_counts(move.agent.id, state.shadow_since)
        return list(blockers_of(move.agent, state, checked, counts))

    # --- back, and on

    async def roll_back(self, name: str, wish: ChangeReason) -> StageChange:
        """Runs that begin from now on call the old side again; those under way stay where they are."""
        _check_why(wish)
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            move = await self._found(name, tx)
            state = move.state
            if state is not None and state.stage == "rolled_back":
                return _unchanged(move)
            if state is None or not state.is_open:
                raise _cannot_roll_back(move)
            back = stages.rolled_back(state)
            changes = await _write(tx, [move], {move.agent.id: back}, wish)
        await self._tell(changes)
        return changes[0]

    async def roll_back_if(self, agent_id: str, *, who: str, why: str, only_if: int) -> bool:
        """
        The way back of a new side that was found wanting.

        False: the last event of the agent's move is not `only_if` any more, or there is no way back from there.
        """
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            move = await self._found(agent_id, tx)
            if move.event is None or move.event.id != only_if or move.state is None or not move.state.is_open:
                return False
            back = stages.rolled_back(move.state)
            changes = await _write(tx, [move], {move.agent.id: back}, ChangeReason(who=who, why=why))
        await self._tell(changes)
        return True

    async def roll_back_all(self, wish: ChangeReason) -> BulkChangeResult:
        """Everything that has an old side goes back to it; of what has none any more it is said."""
        _check_why(wish)
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            moves = await self._all(tx)
            back = {
                move.agent.id: stages.rolled_back(move.state)
                for move in moves
                if move.state is not None and move.state.is_open
            }
            changes = await _write(tx, [move for move in moves if move.agent.id in back], back, wish)
        await self._tell(changes)
        return BulkChangeResult(
            changed=changes or [_unchanged(move) for move in _at(moves, "rolled_back")],
            refused=[],
            left_alone=[_refusal(move.agent, _cannot_roll_back(move)) for move in _at(moves, "finished")],
        )

    async def finish(self, name: str, wish: ChangeReason) -> StageChange:
        """The new side is the agent's own from now on; there is no way back. Raises `Conflict`."""
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            change = await self._finish(tx, await self._found(name, tx), wish)
        await self._tell([change])
        return change

    async def finish_all(self, wish: ChangeReason) -> BulkChangeResult:
        """Of those that have been cut over; each that has to wait is refused."""
        changed: list[StageChange] = []
        refused: list[RefusedChange] = []
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            for move in _at(await self._all(tx), "cut_over"):
                try:
                    changed.append(await self._finish(tx, move, wish))
                except Conflict as exc:
                    refused.append(_refusal(move.agent, exc))
        await self._tell(changed)
        return BulkChangeResult(changed=changed, refused=refused, left_alone=[])

    async def _finish(self, tx: Transaction, move: _AgentMigration, wish: ChangeReason) -> StageChange:
        agent, state = move.agent, move.state
        if state is None or state.stage != "cut_over" or state.target is None or move.event is None:
            raise Conflict(
                f"The agent {agent.name!r} has not been cut over.",
                fix=f"See where it stands: trunkline agents migrate status {agent.name}",
            )
        await self._refuse_while_old_runs_go_on(tx, agent, state, move.event)
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
        changes = await _write(tx, [move], {agent.id: stages.finished(state, row.version)}, wish)
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
        wish: ChangeReason,
        decide: Callable[[Transaction, _AgentMigration, int], MigrationState],
    ) -> StageChange:
        async with self._store.transaction() as tx:
            await tx.lock_agent_events()
            move = await self._found(name, tx)
            state = decide(tx, move, await tx.last_agent_event() + 1)
            changes = await _write(tx, [move], {move.agent.id: state}, wish)
        await self._tell(changes)
        return changes[0]

    async def _tell(self, changes: Collection[StageChange]) -> None:
        """When they are committed."""
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
        moves: list[_AgentMigration] = []
        after = None
        while page := await self._store.agents(limit=_PAGE, after=after):
            latest = await (tx or self._store).latest_migrations([agent.id for agent in page])
            moves += [_agent_migration(agent, latest) for agent in page]
            after = page[-1].name
        return moves


def summary_of(report: Report) -> str:
    """What a check has found, in a few words."""
    failures = report.failures()
    if not failures:
        return f"grade {report.grade}"
    first = "; ".join(f"{finding.title}: {finding.seen}" for finding in failures[:3])
    more = f" and {len(failures) - 3} more" if len(failures) > 3 else ""
    return f"grade {report.grade}, {first}{more}"


def _agent_migration(agent: Agent, latest: Mapping[str, AgentEvent]) -> _AgentMigration:
    event = latest.get(agent.id)
    return _AgentMigration(agent=agent, event=event, state=state_of(event))


def _at(moves: Iterable[_AgentMigration], stage: MigrationStage) -> list[_AgentMigration]:
    return [move for move in moves if move.state is not None and move.state.stage == stage]


def _rollout_request(
    move: _AgentMigration, target: RequestedTarget, percent: float, changes: LimitChanges
) -> RolloutRequest:
    limits = stages.with_limits(DEFAULT_LIMITS if move.state is None else move.state.limits, changes)
    refuse([*_check_percent(percent), *_check_limits(limits)])
    return RolloutRequest(
        target=resolve_target(move.agent, move.state, target), percent=percent, limits=limits
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


def _targeted(move: _AgentMigration) -> MigrationState:
    assert move.state is not None  # noqa: S101 - without one it is blocked, forced or not
    return move.state


async def _write(
    tx: Transaction,
    moves: Sequence[_AgentMigration],
    states: Mapping[str, MigrationState],
    wish: ChangeReason,
) -> list[StageChange]:
    events = await tx.put_agent_events(
        [
            NewAgentEvent(
                agent_id=move.agent.id,
                agent=move.agent.name,
                kind="migration",
                who=wish.who,
                why=wish.why.strip() or NO_REASON,
                data=encode_state(states[move.agent.id]),
            )
            for move in moves
        ]
    )
    await tx.put_audit([_audited(move, states[move.agent.id], wish) for move in moves])
    return [StageChange(agent=event.agent, state=states[event.agent_id], event=event) for event in events]


def _audited(move: _AgentMigration, state: MigrationState, wish: ChangeReason) -> NewAuditEntry:
    before = None if move.state is None else move.state.ready
    attests = state.ready is not None and state.ready != before
    return audit_entry(
        "migration",
        "attest" if attests else _ACTIONS.get(state.stage, state.stage),
        move.agent.name,
        # A move knows who it is also where no keys are in use: they may say so, and it may be ourselves.
        who=None if wish.who == SOMEBODY else wish.who,
        stage=state.stage,
        percent=state.percent,
        why=wish.why.strip() or None,
    )


def _unchanged(move: _AgentMigration) -> StageChange:
    return StageChange(agent=move.agent.name, state=_targeted(move))


def _check_why(wish: ChangeReason) -> None:
    if not wish.why.strip():
        raise Invalid(
            "A rollback needs a reason.",
            findings=[Finding(path="why", message="must be given")],
            fix="Say why, for those who read it later: --why TEXT.",
        )


def _cannot_roll_back(move: _AgentMigration) -> Conflict:
    name, state = move.agent.name, move.state
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
