"""
Agents with the state of their migration: read from the store, and changed by writing an agent event.

`Migrations` and `Readiness` decide; this module only reads, writes and reports.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import msgspec
import structlog

from trunkline.agents import Agent
from trunkline.agents.migration import (
    MigrationStage,
    MigrationState,
)
from trunkline.agents.migration.blockers import (
    protocol_in_use,
)
from trunkline.errors import Finding, NotFound
from trunkline.services.agents.cache import AgentCache
from trunkline.services.agents.specs import raise_if_any
from trunkline.services.migration.routing_table import RoutingTable
from trunkline.services.migration.states import decode_migration, encode_migration
from trunkline.services.operations.audit_log import audit_entry
from trunkline.stores.base import Store, Transaction
from trunkline.stores.port.agents.agent_events import AgentEvent, NewAgentEvent
from trunkline.stores.port.operations import NewAuditEntry
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics

log = structlog.stdlib.get_logger()

# The name of a caller where no keys are in use and none is given.
UNNAMED_CALLER = "local"
NO_REASON = "no reason given"
MAX_TEXT_CHARACTERS = 2_000
_MAX_NAME_CHARACTERS = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PAGE = 1_000
_SIMPLE = "simple-a2a"
# What a person does, by the stage that it leads to.
_ACTIONS: dict[MigrationStage, str] = {"cut_over": "cutover", "rolled_back": "rollback", "finished": "finish"}


class ChangeReason(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks for a change, and why."""

    who: str = UNNAMED_CALLER
    why: str = ""


def change_reason(who: str | None, why: str) -> ChangeReason:
    """Raises `Invalid` for texts that are too long or not printable."""
    findings: list[Finding] = []
    if len(why) > MAX_TEXT_CHARACTERS:
        findings.append(Finding(path="why", message=f"must have at most {MAX_TEXT_CHARACTERS} characters"))
    if who is not None and (len(who) > _MAX_NAME_CHARACTERS or _CONTROL.search(who)):
        findings.append(
            Finding(
                path="who", message=f"must be a name of at most {_MAX_NAME_CHARACTERS} characters on one line"
            )
        )
    raise_if_any(findings)
    return ChangeReason(who=(who or "").strip() or UNNAMED_CALLER, why=why)


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


class AgentMigration(msgspec.Struct, frozen=True, kw_only=True):
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


class MigrationRepository:
    def __init__(
        self, store: Store, agent_cache: AgentCache, routing: RoutingTable, metrics: Metrics
    ) -> None:
        self._store = store
        self._agent_cache = agent_cache
        self._routing = routing
        self._metrics = metrics

    async def get(self, name: str, tx: Transaction | None = None) -> AgentMigration:
        """As it is now; inside a transaction that holds the lock, as it stays."""
        agent = await self._store.agents.get(name)
        if agent is None:
            raise NotFound(f"There is no agent {name!r}.", fix="List the agents: trunkline agents list.")
        latest = await (tx or self._store).agent_events.latest_migrations([agent.id])
        return _agent_migration(agent, latest)

    async def all(self, tx: Transaction | None = None) -> list[AgentMigration]:
        migrations: list[AgentMigration] = []
        after = None
        while page := await self._store.agents.page(limit=_PAGE, after=after):
            latest = await (tx or self._store).agent_events.latest_migrations([agent.id for agent in page])
            migrations += [_agent_migration(agent, latest) for agent in page]
            after = page[-1].name
        return migrations

    async def report(self, changes: Collection[StageChange]) -> None:
        """Called when they are committed: logs, counts, and refreshes what is cached."""
        for change in changes:
            event = change.event
            if event is not None:
                self._agent_cache.forget(change.agent)
                self._metrics.migration_changes.labels(change.agent, change.state.stage).inc()
                log.info(
                    log_events.MIGRATION_CHANGED,
                    agent=change.agent,
                    stage=change.state.stage,
                    percent=change.state.percent,
                    who=event.who,
                    why=event.why,
                    event_id=event.id,
                )
        if changes:
            await self._routing.refresh()


async def write_changes(
    tx: Transaction,
    migrations: Sequence[AgentMigration],
    states: Mapping[str, MigrationState],
    reason: ChangeReason,
) -> list[StageChange]:
    events = await tx.agent_events.put(
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
    await tx.audit.put([_audited(migration, states[migration.agent.id], reason) for migration in migrations])
    return [StageChange(agent=event.agent, state=states[event.agent_id], event=event) for event in events]


def unchanged(migration: AgentMigration) -> StageChange:
    return StageChange(agent=migration.agent.name, state=state_of_target(migration))


def state_of_target(migration: AgentMigration) -> MigrationState:
    assert migration.state is not None  # noqa: S101 - without one it is blocked, forced or not
    return migration.state


def _agent_migration(agent: Agent, latest: Mapping[str, AgentEvent]) -> AgentMigration:
    event = latest.get(agent.id)
    return AgentMigration(agent=agent, event=event, state=decode_migration(event))


def _audited(migration: AgentMigration, state: MigrationState, reason: ChangeReason) -> NewAuditEntry:
    before = None if migration.state is None else migration.state.ready
    attests = state.ready is not None and state.ready != before
    return audit_entry(
        "migration",
        "attest" if attests else _ACTIONS.get(state.stage, state.stage),
        migration.agent.name,
        # A migration has a name also where no keys are in use: the caller may give one, or it is a bridge.
        who=None if reason.who == UNNAMED_CALLER else reason.who,
        stage=state.stage,
        percent=state.percent,
        why=reason.why.strip() or None,
    )
