"""The state machine of runs. It is deterministic and does no I/O, so that tests can run it millions of times."""
