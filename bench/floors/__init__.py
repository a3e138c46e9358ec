"""Lower bounds: the same job without Trunkline, written for nothing else."""
