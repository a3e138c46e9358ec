"""What a step does in place of a call: how each action is written, read and described to editors."""
