"""
What an agent is registered with and shown as, for Python code that prepares a registration.

OpenAPI takes the body of a registration from here; every other shape is in `api.resources`.
"""

from trunkline.api.schemas.agents import (
    AgentCreate,
    AgentMetadata,
    AgentProtocol,
    JsonRpcProtocolConfig,
    Shape,
)

__all__ = ["AgentCreate", "AgentMetadata", "AgentProtocol", "JsonRpcProtocolConfig", "Shape"]
