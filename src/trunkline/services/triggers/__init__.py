"""Triggers: saving, showing and firing them, the runs that they start, and webhooks."""
