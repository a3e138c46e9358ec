"""Agents: what the registry keeps of them, and the cards they publish."""

from trunkline.agents.model import AUTO, Agent, AgentMetadata, AuthType, Dialect

__all__ = ["AUTO", "Agent", "AgentMetadata", "AuthType", "Dialect"]
