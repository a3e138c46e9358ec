"""
The shapes of requests and answers, for OpenAPI and for Python code that talks to the API.

Descriptions only: requests are read by the services, answers are written by `views.py`.
"""

from trunkline.api.schemas.activity import AgentActivity, AgentCallPage, AgentCardView
from trunkline.api.schemas.agents import (
    AgentCreate,
    AgentHealth,
    AgentMetadata,
    AgentPage,
    AgentPatch,
    AgentProtocol,
    JsonRpcProtocolConfig,
)
from trunkline.api.schemas.checks import CheckPage, CheckReport, CheckRequest
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
from trunkline.api.schemas.trials import AgentMessage, AgentTrial

__all__ = [
    "AgentActivity",
    "AgentCallPage",
    "AgentCardView",
    "AgentCreate",
    "AgentEventPage",
    "AgentHealth",
    "AgentMessage",
    "AgentMetadata",
    "AgentPage",
    "AgentPatch",
    "AgentProtocol",
    "AgentTrial",
    "CheckPage",
    "CheckReport",
    "CheckRequest",
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
