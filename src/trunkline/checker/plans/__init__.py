"""What each check sends to an agent and what it expects of the answers; no I/O."""
