"""
What the versions of A2A have in common: a task's states, the output in it, and what it means for the step.

A version reads an answer into a `ParsedResult` of its own; from there on all are alike.
"""
