"""Agents: the registry, their history, their limits, and their recent calls."""
