"""
`trunkline up` under the sampler: `--profile` of the bench shows what it saw.

    python -m bench.profiling.sampled_up DATA
"""

from __future__ import annotations

import sys

from bench.profiling.sampler import sampling
from trunkline.settings import load_settings
from trunkline.wiring import run_up

if __name__ == "__main__":
    with sampling():
        run_up(load_settings({"port": 0, "data": sys.argv[1]}))
