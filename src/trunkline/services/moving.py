"""Agents' moves as the store keeps them, and what nobody may change of an agent that has two sides."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from trunkline.agents import Agent
from trunkline.agents.migration import MigrationState
from trunkline.errors import Conflict
from trunkline.jsontypes import encode
from trunkline.stores.agent_records import AgentEvent, AgentRecordWrites

_states = msgspec.json.Decoder(MigrationState)


def encode_state(state: MigrationState) -> bytes:
    return encode(state)


def state_of(event: AgentEvent | None) -> MigrationState | None:
    """The state that an event of kind `migration` has led to."""
    return None if event is None else _states.decode(event.data)


async def refuse_while_moving(tx: AgentRecordWrites, agent: Agent, wish: str) -> None:
    """Nobody begins a move until the transaction ends, either."""
    await tx.lock_agent_events()
    moving = await _moving(tx, [agent.id])
    if moving:
        stage = moving[agent.id].stage.replace("_", " ")
        raise Conflict(
            f"The agent {agent.name!r} is in the middle of a migration ({stage}): {wish}.",
            fix=f"End it first: trunkline agents migrate finish {agent.name},"
            f" or: trunkline agents migrate rollback {agent.name} --why TEXT.",
        )


async def _moving(tx: AgentRecordWrites, agent_ids: Collection[str]) -> dict[str, MigrationState]:
    latest = await tx.latest_migrations(agent_ids)
    states = {agent_id: _states.decode(event.data) for agent_id, event in latest.items()}
    return {agent_id: state for agent_id, state in states.items() if state.is_open}
