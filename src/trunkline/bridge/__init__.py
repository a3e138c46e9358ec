"""The bridge: claims tasks, calls their agents, and writes the results."""
