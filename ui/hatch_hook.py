"""
Puts the web UI into a wheel: built if it is not there yet.

An editable install has no use for it (`make ui` builds it where one wants it), and a source archive brings it along.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        root = Path(self.root)
        if version == "editable" or (root / "src" / "trunkline" / "api" / "static" / "index.html").exists():
            return
        if subprocess.run([sys.executable, str(root / "ui" / "build.py")], check=False).returncode != 0:
            raise SystemExit("The wheel was not built: its web UI is missing. What to do is said above.")
