"""How a step finds its agent when it begins: by an expression with the agents that are allowed, or by a skill."""
