"""Events of other systems and signals to runs: receiving them, and bringing them to the steps that wait."""
