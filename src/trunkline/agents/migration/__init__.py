"""How an agent moves from one protocol, or one address, to another: the rules, pure."""

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
    "ReadinessAttestation",
    "RolloutLimits",
    "MigrationState",
    "MigrationStage",
    "TargetEndpoint",
]
