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

__all__ = [
    "AgentCardView",
    "AgentCreate",
    "AgentHealth",
    "AgentMetadata",
    "AgentPage",
    "AgentPatch",
    "AgentProtocol",
    "JsonRpcProtocolConfig",
    "Shape",
]
