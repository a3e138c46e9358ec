"""Flow control as it is written in a workflow or a trigger: which runs start, and when."""
