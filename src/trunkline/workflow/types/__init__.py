"""What is known about values before a workflow runs: shapes, and the check of the paths that expressions read."""
