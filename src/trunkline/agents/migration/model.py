"""
The state of an agent's migration to another protocol or endpoint.

    planned ──> shadow ──> canary ──> cut_over ──> finished
       ^           |          |           |
       └───────────┴──────────┴───────────┴── rolled_back

The agent's row in the registry is the source endpoint. When the migration is finished, the target is written into the
row. Every change stores the whole state as an agent event. The state at the time when a run was accepted decides which
endpoint it calls (`routing`).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from trunkline.clock import Instant
from trunkline.jsontypes import JsonObject

MigrationStage = Literal["planned", "shadow", "canary", "cut_over", "finished", "rolled_back"]


class TargetEndpoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The endpoint to migrate to. Credentials, timeout, limits and transport are the agent's own."""

    url: str
    protocol: str
    protocol_config: JsonObject | None = None


class RolloutLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When the target is not good enough."""

    # Share of comparisons that may disagree before a cutover is refused.
    disagreement: float = 0.01
    # So many comparisons at least, where the agent is shadowed.
    comparisons: int = 20
    # Of the last `window` calls of the target, at least `calls`: more failures than this roll back.
    error_rate: float = 0.1
    window: int = 50
    calls: int = 10
    # Times the source's 95th percentile, if both endpoints have enough calls; and milliseconds, whatever the source's.
    slowdown: float = 3.0
    slowest_ms: int | None = None


DEFAULT_LIMITS = RolloutLimits()


class ReadinessAttestation(msgspec.Struct, frozen=True, kw_only=True):
    """A person's confirmation of what no program can check: deployed, documented, team told."""

    who: str
    at: Instant
    note: str


class MigrationState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    stage: MigrationStage
    target: TargetEndpoint | None = None
    # When the target was named; a check of before is of something else.
    target_at: Instant = Instant(0)
    # Share of the runs whose tasks are shadowed, or sent to the target.
    percent: float = 0
    limits: RolloutLimits = DEFAULT_LIMITS
    ready: ReadinessAttestation | None = None
    # The agent event that began the present shadow; 0: none.
    shadow_since: int = 0
    # The agent event of the cutover; runs accepted before it may still call the source.
    cut_over_at: int = 0
    # The version of the agent's row that the finished migration has written; an earlier version has the source.
    row_version: int = 0
    # Whether a refusal was overruled; the event says why.
    forced: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the agent has two endpoints."""
        return self.stage in {"shadow", "canary", "cut_over"}
