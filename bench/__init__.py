"""
Measures Trunkline against a hand-written durable loop, side by side in one run.

`python -m bench` prints a table of ratios; absolute times on a shared machine mean little. `--only page` and
`--only runs` are about the web UI in a real browser: how smoothly the page of a large run moves, and whether the list
of runs opens as fast with a hundred thousand runs in the store as with a hundred.
"""
