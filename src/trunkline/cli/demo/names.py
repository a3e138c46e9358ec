"""How the program that runs is called from here: by its name where the shell finds it, by its path otherwise."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def commands_of_this_program() -> tuple[str, str]:
    """What to type for `trunkline` and for the `python` that has it."""
    return _typed("trunkline"), _typed("python")


def _typed(name: str) -> str:
    beside_us = Path(sys.executable).with_name(name)
    found = shutil.which(name)
    if found is not None and Path(found) == beside_us:
        return name
    if not beside_us.exists():
        return f"{sys.executable} -m trunkline" if name == "trunkline" else sys.executable
    relative = os.path.relpath(beside_us)
    return str(beside_us) if relative.startswith("..") else relative
