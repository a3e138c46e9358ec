"""
Measures Trunkline against a hand-written durable loop, side by side in one run.

`python -m bench` prints a table of ratios; absolute times on a shared machine mean little.
"""
