"""Migrations of agents: operations, plan, readiness for a cutover, and the routing table."""
