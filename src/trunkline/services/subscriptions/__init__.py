"""Subscriptions: reports of changes to other systems."""
