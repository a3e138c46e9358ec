"""
How much work a step costs, counted: calls, messages encoded and decoded, rows and bytes written.

Counts have no noise that a busy machine could add, so growth shows at once. A bound is what was counted when it was
set, with a little room. If your change lowers a count, lower its bound; if it raises one, find out why.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.embedded_only

# Per step of a run that a client waits for. How many runs share a turn differs, and with it the calls, a little.
BOUNDS = {
    "encodes": 11.4,
    "decodes": 4.7,
    "rows": 9.5,
    "bytes": 4_700.0,
    "python calls": 500.0,
}


def test_a_step_costs_no_more_than_it_did(tmp_path: Path) -> None:
    counter = subprocess.run(
        [sys.executable, "-m", "tests.scenarios.work_counter", str(tmp_path)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=240,
    )
    work = json.loads(counter.stdout)
    too_much = {name: f"{found:.2f}" for name, found in work["per_step"].items() if found > BOUNDS[name]}
    assert not too_much, sorted(work["statements"].items(), key=lambda item: -item[1])
    assert work["per_step"].keys() == BOUNDS.keys()
