"""
`trunkline serve --role ROLE` under the sampler: `--profile --only distributed` of the bench shows what it saw.

    python -m bench.profiling.sampled_role ROLE
"""

from __future__ import annotations

import sys

from bench.profiling.sampler import sampling
from trunkline.settings import load_settings
from trunkline.wiring import ALL_ROLES, run_roles

if __name__ == "__main__":
    role = sys.argv[1]
    assert role in ALL_ROLES
    with sampling():
        run_roles(load_settings({"port": 0}), [role])
