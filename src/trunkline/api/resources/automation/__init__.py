"""The resources of events and human tasks."""
