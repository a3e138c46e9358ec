"""An alias of `trunkline.agentkit`, the kit for authors of agents: the same names, the same objects."""

from trunkline.agentkit import (
    Agent,
    AgentError,
    Artifact,
    Data,
    File,
    Message,
    Question,
    Rejected,
    Status,
    Task,
    Text,
)

__all__ = [
    "Agent",
    "AgentError",
    "Artifact",
    "Data",
    "File",
    "Message",
    "Question",
    "Rejected",
    "Status",
    "Task",
    "Text",
]
