"""
The files of the web UI: a folder where it was built, one archive in an installed package.

The archive is a third smaller than the files. It is read once, when the web UI is opened for the first time.
"""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

BUILT = Path(str(files("trunkline.api"))) / "static"
PACKED = BUILT.with_name("static.tar.xz")
INDEX = "index.html"


def is_there() -> bool:
    return (BUILT / INDEX).is_file() or PACKED.is_file()


@lru_cache(4)
def read_files(folder: Path | None) -> Mapping[str, bytes]:
    """All files by their path in `folder`, or those of this package without a folder."""
    if folder is None and not (BUILT / INDEX).is_file():
        return _unpacked(PACKED) if PACKED.is_file() else {}
    place = folder or BUILT
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def _unpacked(archive: Path) -> Mapping[str, bytes]:
    with tarfile.open(archive, "r:xz") as packed:
        return {
            member.name: content.read()
            for member in packed
            if (content := packed.extractfile(member)) is not None
        }
