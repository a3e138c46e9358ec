"""
What is known of an agent's move.

    planned ──> shadow ──> canary ──> cut_over ──> finished
       ^           |          |           |
       └───────────┴──────────┴───────────┴── rolled_back

The agent's row in the registry is its old side, the `Target` its new one, until the move is finished: then the target
is written into the row. Every change writes the whole state anew, as an event of the agent; which side a run calls is
the one that the state of its beginning gives (`sides`).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from trunkline.clock import Instant
from trunkline.jsontypes import JsonObject

MigrationStage = Literal["planned", "shadow", "canary", "cut_over", "finished", "rolled_back"]


class TargetEndpoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The new side. Credentials, timeout, limits and transport are the agent's own."""

    url: str
    protocol: str
    protocol_config: JsonObject | None = None


class RolloutLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When the new side is not good enough."""

    # Share of comparisons that may disagree before a cutover is refused.
    disagreement: float = 0.01
    # So many comparisons at least, where the agent is shadowed.
    comparisons: int = 20
    # Of the last `window` calls on the new side, at least `calls`: more failures than this roll back.
    error_rate: float = 0.1
    window: int = 50
    calls: int = 10
    # Times the old side's 95th percentile, if both sides have enough calls; and milliseconds, whatever the old side's.
    slowdown: float = 3.0
    slowest_ms: int | None = None


DEFAULT_LIMITS = RolloutLimits()


class ReadinessAttestation(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody's word for what no program can check: deployed, documented, team told."""

    who: str
    at: Instant
    note: str


class MigrationState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    stage: MigrationStage
    target: TargetEndpoint | None = None
    # When the target was named; a check of before is of something else.
    target_at: Instant = Instant(0)
    # Of the runs: whose tasks are shadowed, or called on the new side.
    percent: float = 0
    limits: RolloutLimits = DEFAULT_LIMITS
    ready: ReadinessAttestation | None = None
    # The agent event that began the present shadow; 0: none.
    shadow_since: int = 0
    # The agent event of the cutover; runs accepted before it may still call the old side.
    cut_over_at: int = 0
    # The version of the agent's row that the finished move has written; an earlier one, read before, has the old side.
    row_version: int = 0
    # Whether somebody has overruled a refusal; the event says why.
    forced: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the agent has two sides."""
        return self.stage in {"shadow", "canary", "cut_over"}
