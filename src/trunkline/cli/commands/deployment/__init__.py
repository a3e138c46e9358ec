"""Commands that set up and look after an installation: its processes, settings, tables, topics and data."""
