"""What the figures run on: the agent, the job, load, child processes, and Trunkline in both modes."""
