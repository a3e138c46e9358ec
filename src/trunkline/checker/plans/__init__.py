"""What each check sends to an agent, and what it expects in the answers; no I/O."""
