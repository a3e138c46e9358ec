"""Where the time goes: samples of the CPU time of each process."""
