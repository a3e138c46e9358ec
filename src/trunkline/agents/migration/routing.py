"""
Routing of runs while an agent migrates: which endpoint, source or target, a run calls.

The state of the migration when the run was accepted decides; where it applies to a share of the runs, a hash of run and
agent does. Whatever happens to the migration later, a run keeps its endpoint. Deterministic, no I/O: every bridge
decides alike.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from typing import Literal

import msgspec

from trunkline.agents.migration.model import MigrationState, TargetEndpoint

# `old` is the source, `new` the target; these are the names that are stored and shown.
EndpointName = Literal["old", "new"]

_HASHES = 2**64


class MigrationRevision(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's migration from one agent event on."""

    event: int
    # The agent's name at that time.
    agent: str
    state: MigrationState
    # The event since which runs have called this target without interruption; 0: no run calls it.
    rollout_since: int = 0

    @property
    def is_open(self) -> bool:
        """Whether there are two endpoints. When the migration is finished, the agent's row is the target."""
        return self.state.is_open


class MigrationHistory:
    """All revisions of one agent's migration, oldest first."""

    def __init__(self) -> None:
        self._revisions: list[MigrationRevision] = []
        self._events: list[int] = []

    def add(self, event: int, agent: str, state: MigrationState) -> None:
        """`event` is greater than all before."""
        since = self._rollout_since(event, state)
        self._revisions.append(MigrationRevision(event=event, agent=agent, state=state, rollout_since=since))
        self._events.append(event)

    def _rollout_since(self, event: int, state: MigrationState) -> int:
        if state.stage not in {"canary", "cut_over"}:
            return 0
        last = self.last
        goes_on = last is not None and last.rollout_since and last.state.target == state.target
        return last.rollout_since if last is not None and goes_on else event

    def at(self, routing_version: int) -> MigrationRevision | None:
        """The last revision that was known when a run with this routing version was accepted."""
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
    """Whether what this run sends to the source also goes to the target."""
    return state.stage == "shadow" and is_in_share(state.percent, run_id, agent_id)


def target_for(state: MigrationState, run_id: str, agent_id: str) -> TargetEndpoint | None:
    """The target, if the run calls it."""
    return state.target if endpoint_for(state, run_id, agent_id) == "new" else None


def is_in_share(percent: float, run_id: str, agent_id: str) -> bool:
    """
    Whether the run is in this share of all runs; a run in a smaller share is also in every larger one.

    The agent is hashed as well, so that the first runs of every migration are not the same ones.
    """
    digest = hashlib.sha256(f"{run_id}/{agent_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") * 100 < percent * _HASHES
