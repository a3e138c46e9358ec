"""The rules of migrating an agent to another protocol or endpoint. Deterministic, no I/O."""

from trunkline.agents.migration.model import (
    DEFAULT_LIMITS,
    MigrationStage,
    MigrationState,
    ReadinessAttestation,
    RolloutLimits,
    TargetEndpoint,
)

__all__ = [
    "DEFAULT_LIMITS",
    "MigrationStage",
    "MigrationState",
    "ReadinessAttestation",
    "RolloutLimits",
    "TargetEndpoint",
]
