"""Agents: the registry, their history, and their recent calls."""
