"""What every request passes before it reaches a route, outermost first: correlation, origin, web UI, API key."""
