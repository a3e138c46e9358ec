"""The graph of steps: the links between them, cycles, and joins."""
