"""`make demo-zones`, as a user runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_same_exchange_is_shown_twice_and_every_message_is_as_the_contract_has_it() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "examples.zones.demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert re.search(
        r"^\d+ messages between the zones, 0 not as the contract has them\.$", told.stdout, re.MULTILINE
    )
    exchanges = re.findall(r"^ +(?:->|<-) (\{.*)$", told.stdout, re.MULTILINE)
    assert len(exchanges) == 4
    assert exchanges[:2] == exchanges[2:]
    assert "Traceback" not in told.stderr
