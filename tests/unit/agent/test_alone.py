"""The kit stands alone: whoever takes it gets nothing else of Trunkline, and of other packages msgspec only."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
before = set(sys.modules)
import trunkline.agent
found = {name for name in set(sys.modules) - before if not name.startswith("trunkline.agent")}
# msgspec takes typing_extensions where it is there, and does without where it is not.
known = {*sys.stdlib_module_names, "typing_extensions"}
print(sorted({name.partition(".")[0] for name in found} - known))
print(sorted(name for name in found if name.startswith("trunkline.")))
"""


def test_the_kit_brings_nothing_but_msgspec() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['msgspec', 'trunkline']", "[]"]
