"""Resolves an agent for a call: its route, dialect, card, access token and credentials."""
