"""Triggers: saving, showing and firing them by hand."""
