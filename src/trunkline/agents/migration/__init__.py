"""How an agent moves from one protocol, or one address, to another: the rules, pure."""

from trunkline.agents.migration.model import (
    DEFAULT_LIMITS,
    Attestation,
    Limits,
    MigrationState,
    Stage,
    Target,
)

__all__ = ["DEFAULT_LIMITS", "Attestation", "Limits", "MigrationState", "Stage", "Target"]
