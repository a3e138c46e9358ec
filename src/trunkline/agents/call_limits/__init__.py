"""The rules of an agent's rate limit and circuit breaker. Deterministic, no I/O."""
