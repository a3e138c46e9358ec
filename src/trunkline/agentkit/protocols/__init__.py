"""The protocols that an agent of the kit speaks, seen from the agent, and the card that announces them."""
