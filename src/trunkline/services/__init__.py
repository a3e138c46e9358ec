"""The operations of the system, independent of the interface that calls them: agents, workflows, runs, migrations."""
