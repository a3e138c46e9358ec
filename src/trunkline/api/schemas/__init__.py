"""
The shapes of requests and answers, for OpenAPI and for Python code that talks to the API.

Descriptions only: requests are read by the services, answers are written by `views.py`.
"""

from trunkline.api.schemas.activity import AgentCardView
from trunkline.api.schemas.agents import (
    AgentCreate,
    AgentHealth,
    AgentMetadata,
    AgentPage,
    AgentPatch,
    AgentProtocol,
    JsonRpcProtocolConfig,
)
from trunkline.api.schemas.common import Shape
from trunkline.api.schemas.migration import (
    AgentEventPage,
    ComparisonPage,
    CutoverRequest,
    MigrationChange,
    MigrationOutcome,
    MigrationPage,
    MigrationRequest,
    MigrationStatus,
    ReadyRequest,
    RollbackRequest,
    TrialRequest,
)

__all__ = [
    "AgentCardView",
    "AgentCreate",
    "AgentEventPage",
    "AgentHealth",
    "AgentMetadata",
    "AgentPage",
    "AgentPatch",
    "AgentProtocol",
    "ComparisonPage",
    "CutoverRequest",
    "JsonRpcProtocolConfig",
    "MigrationChange",
    "MigrationOutcome",
    "MigrationPage",
    "MigrationRequest",
    "MigrationStatus",
    "ReadyRequest",
    "RollbackRequest",
    "Shape",
    "TrialRequest",
]
