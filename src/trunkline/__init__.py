"""Trunkline: a durable workflow orchestrator for AI agents that are outside HTTP services."""

__version__ = "0.1.0"
