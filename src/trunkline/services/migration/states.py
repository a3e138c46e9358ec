"""Migration states as the store keeps them, and the guard against changes of an agent that is migrating."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from trunkline.agents import Agent
from trunkline.agents.migration import MigrationStage, MigrationState
from trunkline.errors import Conflict
from trunkline.jsontypes import encode
from trunkline.stores.base import Store
from trunkline.stores.port.agents.agent_events import AgentEvent, AgentEventWrites

_PAGE = 1_000
_states = msgspec.json.Decoder(MigrationState)


def encode_migration(state: MigrationState) -> bytes:
    return encode(state)


def decode_migration(event: AgentEvent | None) -> MigrationState | None:
    """The state that an event of kind `migration` has led to."""
    return None if event is None else _states.decode(event.data)


async def refuse_while_migrating(events: AgentEventWrites, agent: Agent, refused: str) -> None:
    """Raises `Conflict` while the agent migrates. No migration can start until the transaction ends, either."""
    await events.lock()
    migrating = await _open_migrations(events, [agent.id])
    if migrating:
        stage = migrating[agent.id].stage.replace("_", " ")
        raise Conflict(
            f"The agent {agent.name!r} is being migrated (stage {stage}): {refused}.",
            fix=f"End the migration first: trunkline agents migrate finish {agent.name}, or: trunkline "
            f"agents migrate rollback {agent.name} --note TEXT.",
        )


async def _open_migrations(events: AgentEventWrites, agent_ids: Collection[str]) -> dict[str, MigrationState]:
    latest = await events.latest_migrations(agent_ids)
    states = {agent_id: _states.decode(event.data) for agent_id, event in latest.items()}
    return {agent_id: state for agent_id, state in states.items() if state.is_open}


async def stages_of(store: Store) -> dict[str, MigrationStage]:
    """The stage of each agent that migrates or has migrated, by its name."""
    stages: dict[str, MigrationStage] = {}
    after = None
    while page := await store.agents.page(limit=_PAGE, after=after):
        latest = await store.agent_events.latest_migrations([agent.id for agent in page])
        names = {agent.id: agent.name for agent in page}
        stages |= {names[agent_id]: _states.decode(event.data).stage for agent_id, event in latest.items()}
        after = page[-1].name
    return stages
