"""Agents: the registry, their limits and recent calls, test calls, checks and migrations."""
