"""The run state machine: pure, so that it can be tested by the million and replayed from its journal."""
