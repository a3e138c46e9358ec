"""Agents: the registry, their recent calls, checks and migrations."""
