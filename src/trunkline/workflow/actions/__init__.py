"""What a step does instead of a call: how each action is written, read and described to editors."""
