"""JSON-RPC 2.0: its envelope, batches, and the adapter for agents that are called by any method."""
