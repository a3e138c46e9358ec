"""Agents: the registry and its rules, the cache, checks and drift, test calls, activity, push notifications."""
