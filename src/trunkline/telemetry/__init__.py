"""Logs, metrics and the names both use."""
