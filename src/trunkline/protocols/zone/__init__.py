"""The adapter for agents that are zones, the answers of zones, and the profiles that their params must match."""
