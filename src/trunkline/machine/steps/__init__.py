"""How each kind of step begins, takes its inputs, fails and ends."""
