"""The cards of what is published: what is in them, and where they are served."""
