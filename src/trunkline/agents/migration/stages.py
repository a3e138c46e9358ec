"""
What a wish makes of an agent's move: pure.

Each function gives the whole state from then on, or raises `Conflict` where the stage does not allow the wish. `event`
is the id that the change will have.
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
    """What a shadow or a canary is asked for with."""

    target: TargetEndpoint
    percent: float
    limits: RolloutLimits


def attested(
    state: State, ready: ReadinessAttestation, target: TargetEndpoint | None, now: Instant
) -> MigrationState:
    """What somebody has attested is of one target: of another it has to be attested again."""
    present = _begun(state)
    if present.stage == "cut_over":
        raise Conflict(
            "It has been cut over already.", fix="Finish the migration, or roll it back to begin anew."
        )
    return replace(_aimed(present, target or present.target, now), ready=ready)


def shadowed(state: State, trial: RolloutRequest, event: int, now: Instant) -> MigrationState:
    present = _begun(state)
    _refuse_after_cutover(present)
    aimed = _aimed(present, trial.target, now)
    goes_on = present.stage == "shadow" and present.target == trial.target
    return replace(
        aimed,
        stage="shadow",
        percent=trial.percent,
        limits=trial.limits,
        shadow_since=present.shadow_since if goes_on else event,
        forced=False,
    )


def on_canary(state: State, trial: RolloutRequest, now: Instant) -> MigrationState:
    present = _begun(state)
    _refuse_after_cutover(present)
    aimed = _aimed(present, trial.target, now)
    return replace(aimed, stage="canary", percent=trial.percent, limits=trial.limits, forced=False)


def cut_over(state: MigrationState, event: int, *, forced: bool) -> MigrationState:
    return replace(state, stage="cut_over", percent=100, cut_over_at=event, forced=forced)


def rolled_back(state: MigrationState) -> MigrationState:
    """Whoever has gone back had a reason to: somebody has to attest again that the new side is ready."""
    return replace(state, stage="rolled_back", percent=0, cut_over_at=0, forced=False, ready=None)


def finished(state: MigrationState, row_version: int) -> MigrationState:
    return replace(state, stage="finished", percent=100, row_version=row_version)


def with_limits(limits: RolloutLimits, changes: LimitChanges) -> RolloutLimits:
    given = {name: value for name, value in msgspec.structs.asdict(changes).items() if value is not UNSET}
    return replace(limits, **given)


class LimitChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits by their names; those that are left out stay as they are."""

    disagreement: float | UnsetType = UNSET
    comparisons: int | UnsetType = UNSET
    error_rate: float | UnsetType = UNSET
    window: int | UnsetType = UNSET
    calls: int | UnsetType = UNSET
    slowdown: float | UnsetType = UNSET
    slowest_ms: int | UnsetType | None = UNSET


def _begun(state: State) -> MigrationState:
    """A move that is over begins anew: where it led to is the agent's own side by now."""
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
        # Who has attested before there was a target has meant the first one.
        ready=state.ready if known else None,
    )


def _refuse_after_cutover(state: MigrationState) -> None:
    if state.stage == "cut_over":
        raise Conflict(
            "It has been cut over already: every new run calls the new side.",
            fix="Roll it back first: trunkline agents migrate rollback NAME --why TEXT.",
        )
