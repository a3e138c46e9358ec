"""The executor: drives runs by applying their queued inputs, and deletes old ones."""
