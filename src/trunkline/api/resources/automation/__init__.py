"""The resources of events."""
