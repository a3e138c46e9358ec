"""
Which side of an agent a run calls: pure, so that every bridge says the same, for ever.

The state of the agent's move when the run was accepted decides, and where only a share of the runs is meant, a hash of
the run and the agent: whatever happens to the move meanwhile, a run never changes sides.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from typing import Literal

import msgspec

from trunkline.agents.migration.model import MigrationState, TargetEndpoint

EndpointName = Literal["old", "new"]

_HASHES = 2**64


class MigrationRevision(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's move from one event on."""

    event: int
    # The agent's name at that time.
    agent: str
    state: MigrationState
    # The event from which on runs have called this new side without a break; 0: they do not.
    rollout_since: int = 0

    @property
    def is_open(self) -> bool:
        """Whether there are two sides. When a move is finished the agent's row is the new one."""
        return self.state.is_open


class MigrationHistory:
    """All moments of one agent, in their order."""

    def __init__(self) -> None:
        self._revisions: list[MigrationRevision] = []
        self._events: list[int] = []

    def add(self, event: int, agent: str, state: MigrationState) -> None:
        """`event` is greater than all before."""
        trial = self._rollout_since(event, state)
        self._revisions.append(MigrationRevision(event=event, agent=agent, state=state, rollout_since=trial))
        self._events.append(event)

    def _rollout_since(self, event: int, state: MigrationState) -> int:
        if state.stage not in {"canary", "cut_over"}:
            return 0
        last = self.last
        goes_on = last is not None and last.rollout_since and last.state.target == state.target
        return last.rollout_since if last is not None and goes_on else event

    def at(self, routing_version: int) -> MigrationRevision | None:
        """The last moment that a run accepted with `routes` knows of."""
        index = bisect_right(self._events, routing_version)
        return self._revisions[index - 1] if index else None

    @property
    def last(self) -> MigrationRevision | None:
        return self._revisions[-1] if self._revisions else None


def endpoint_for(state: MigrationState, run_id: str, agent_id: str) -> EndpointName:
    match state.stage:
        case "cut_over" | "finished":
            return "new"
        case "canary":
            return "new" if is_in_share(state.percent, run_id, agent_id) else "old"
        case "planned" | "shadow" | "rolled_back":
            return "old"


def is_shadowed(state: MigrationState, run_id: str, agent_id: str) -> bool:
    """Whether what this run asks of the old side also goes to the new one."""
    return state.stage == "shadow" and is_in_share(state.percent, run_id, agent_id)


def target_for(state: MigrationState, run_id: str, agent_id: str) -> TargetEndpoint | None:
    """The new side, if the run calls it."""
    return state.target if endpoint_for(state, run_id, agent_id) == "new" else None


def is_in_share(percent: float, run_id: str, agent_id: str) -> bool:
    """
    Whether the run is of this share of all runs; whoever is of a smaller share is of a greater one, too.

    The agent is hashed as well, so that not the same runs try everything that is new.
    """
    digest = hashlib.sha256(f"{run_id}/{agent_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") * 100 < percent * _HASHES
