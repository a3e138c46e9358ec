"""Automation: triggers and received events, which start or continue runs, and callbacks, which report on them."""
