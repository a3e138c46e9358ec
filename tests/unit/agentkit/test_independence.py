"""The kit stands alone: it loads nothing else of Trunkline, and of other packages only msgspec."""

from __future__ import annotations

import subprocess
import sys

import pytest

import trunkline.agent as alias
from trunkline import agentkit

PROGRAM = """
import sys
before = set(sys.modules)
import {package}
found = {{name for name in set(sys.modules) - before if not name.startswith("trunkline.agent")}}
# msgspec takes typing_extensions where it is there, and does without where it is not.
known = {{*sys.stdlib_module_names, "typing_extensions"}}
print(sorted({{name.partition(".")[0] for name in found}} - known))
print(sorted(name for name in found if name.startswith("trunkline.")))
"""


@pytest.mark.parametrize("package", ["trunkline.agentkit", "trunkline.agent"])
def test_the_kit_brings_nothing_but_msgspec(package: str) -> None:
    program = PROGRAM.format(package=package)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['msgspec', 'trunkline']", "[]"]


def test_the_old_import_path_gives_the_same_objects() -> None:
    assert alias.__all__ == agentkit.__all__
    for name in agentkit.__all__:
        assert getattr(alias, name) is getattr(agentkit, name)
