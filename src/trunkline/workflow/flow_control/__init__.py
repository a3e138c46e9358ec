"""The flow control of a workflow or a trigger, as users write it: which runs start, and when."""
