"""People: answers to the human tasks of steps."""
