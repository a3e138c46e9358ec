"""
Puts the web UI into a wheel, packed: built if it is not there yet.

An editable install has no use for it (`make ui` builds it where one wants it), and a source archive brings the built
files along.
"""

from __future__ import annotations

import lzma
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Text has no alignment, so literals are better predicted from the character before them.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]


class CustomBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        static = Path(self.root) / "src" / "trunkline" / "api" / "static"
        if not (static / "index.html").exists():
            built = subprocess.run([sys.executable, str(Path(self.root) / "ui" / "build.py")], check=False)
            if built.returncode != 0:
                raise SystemExit("Nothing was built: the web UI is missing. What to do is said above.")
        if self.target_name == "wheel":
            self._folder = TemporaryDirectory(prefix="trunkline-ui-")
            archive = Path(self._folder.name) / "static.tar.xz"
            _pack(static, archive)
            build_data["force_include"][str(archive)] = "trunkline/api/static.tar.xz"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def _pack(static: Path, archive: Path) -> None:
    """The same files give the same archive, whoever packs them and when."""
    with (
        lzma.open(archive, "wb", filters=_FILTERS) as stream,
        tarfile.open(fileobj=stream, mode="w") as packed,
    ):
        for path in sorted(path for path in static.rglob("*") if path.is_file()):
            about = tarfile.TarInfo(str(path.relative_to(static)))
            about.size = path.stat().st_size
            with path.open("rb") as content:
                packed.addfile(about, content)
