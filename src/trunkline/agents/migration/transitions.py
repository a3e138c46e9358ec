"""
The transitions of a migration between its stages. Deterministic, no I/O.

Each function returns the whole next state, or raises `Conflict` where the present stage does not allow the transition.
`event` is the id that the change will have.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from trunkline.agents.migration.model import (
    MigrationState,
    ReadinessAttestation,
    RolloutLimits,
    TargetEndpoint,
)
from trunkline.clock import Instant
from trunkline.errors import Conflict

State: TypeAlias = MigrationState | None

PLANNED = MigrationState(stage="planned")


class RolloutRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a shadow or a canary."""

    agent: str
    target: TargetEndpoint
    percent: float
    limits: RolloutLimits


def attested(
    state: State, ready: ReadinessAttestation, target: TargetEndpoint | None, now: Instant
) -> MigrationState:
    """An attestation holds for one target; another target has to be attested again."""
    present = _begun(state)
    if present.stage == "cut_over":
        raise Conflict(
            "The agent has already been cut over.",
            fix="Finish the migration, or roll it back to start again.",
        )
    return replace(_aimed(present, target or present.target, now), ready=ready)


def shadowed(state: State, request: RolloutRequest, event: int, now: Instant) -> MigrationState:
    present = _begun(state)
    _refuse_after_cutover(request.agent, present)
    aimed = _aimed(present, request.target, now)
    goes_on = present.stage == "shadow" and present.target == request.target
    return replace(
        aimed,
        stage="shadow",
        percent=request.percent,
        limits=request.limits,
        shadow_since=present.shadow_since if goes_on else event,
        forced=False,
    )


def on_canary(state: State, request: RolloutRequest, now: Instant) -> MigrationState:
    present = _begun(state)
    _refuse_after_cutover(request.agent, present)
    aimed = _aimed(present, request.target, now)
    return replace(aimed, stage="canary", percent=request.percent, limits=request.limits, forced=False)


def cut_over(state: MigrationState, event: int, *, forced: bool) -> MigrationState:
    return replace(state, stage="cut_over", percent=100, cut_over_at=event, forced=forced)


def rolled_back(state: MigrationState) -> MigrationState:
    """There was a reason to roll back: the target has to be attested again."""
    return replace(state, stage="rolled_back", percent=0, cut_over_at=0, forced=False, ready=None)


def finished(state: MigrationState, row_version: int) -> MigrationState:
    return replace(state, stage="finished", percent=100, row_version=row_version)


def with_limits(limits: RolloutLimits, changes: LimitChanges) -> RolloutLimits:
    given = {name: value for name, value in msgspec.structs.asdict(changes).items() if value is not UNSET}
    return replace(limits, **given)


class LimitChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits to change. Omitted limits stay unchanged."""

    disagreement: float | UnsetType = UNSET
    comparisons: int | UnsetType = UNSET
    error_rate: float | UnsetType = UNSET
    window: int | UnsetType = UNSET
    calls: int | UnsetType = UNSET
    slowdown: float | UnsetType = UNSET
    slowest_ms: int | UnsetType | None = UNSET


def _begun(state: State) -> MigrationState:
    """A finished migration starts over: its target is the agent's registered endpoint by now."""
    return PLANNED if state is None or state.stage == "finished" else state


def _aimed(state: MigrationState, target: TargetEndpoint | None, now: Instant) -> MigrationState:
    if target == state.target:
        return state
    known = state.target is None
    return replace(
        state,
        target=target,
        target_at=now,
        shadow_since=0,
        cut_over_at=0,
        # An attestation given before there was a target holds for the first one.
        ready=state.ready if known else None,
    )


def _refuse_after_cutover(agent: str, state: MigrationState) -> None:
    if state.stage == "cut_over":
        raise Conflict(
            f"The agent {agent!r} has already been cut over, so all new runs call the target.",
            fix=f"Roll it back first, with a reason: trunkline agents migrate rollback {agent} --note …",
        )
