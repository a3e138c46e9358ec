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
from trunkline.api.schemas.common import Finding, Liveness, Problem, Readiness, Shape
from trunkline.api.schemas.dead_letters import DeadLetter, DeadLetterPage
from trunkline.api.schemas.inbox import InboxItem, InboxPage
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
from trunkline.api.schemas.oversight import AuditPage, Caller, SystemState
from trunkline.api.schemas.run_logs import LogPage
from trunkline.api.schemas.runs import (
    ErrorCodeList,
    EventPage,
    ReplyRequest,
    ResolveRequest,
    RetryRequest,
    Run,
    RunPage,
    StepPage,
    WirePage,
)
from trunkline.api.schemas.trials import AgentMessage, AgentTrial
from trunkline.api.schemas.workflows import (
    SavedWorkflow,
    Workflow,
    WorkflowGraph,
    WorkflowPage,
    WorkflowValidation,
)

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
    "AuditPage",
    "Caller",
    "CheckPage",
    "CheckReport",
    "CheckRequest",
    "ComparisonPage",
    "CutoverRequest",
    "DeadLetter",
    "DeadLetterPage",
    "ErrorCodeList",
    "EventPage",
    "Finding",
    "InboxItem",
    "InboxPage",
    "JsonRpcProtocolConfig",
    "Liveness",
    "LogPage",
    "MigrationChange",
    "MigrationOutcome",
    "MigrationPage",
    "MigrationRequest",
    "MigrationStatus",
    "Problem",
    "Readiness",
    "ReadyRequest",
    "ReplyRequest",
    "ResolveRequest",
    "RetryRequest",
    "RollbackRequest",
    "Run",
    "RunPage",
    "SavedWorkflow",
    "Shape",
    "StepPage",
    "SystemState",
    "TrialRequest",
    "WirePage",
    "Workflow",
    "WorkflowGraph",
    "WorkflowPage",
    "WorkflowValidation",
]
