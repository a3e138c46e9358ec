"""Folders for services that last as long as they are used."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def service_folder(purpose: str, *, parent: Path | None = None) -> Generator[Path]:
    """A new one, short enough for a socket's path, and open to the user who runs PostgreSQL for root."""
    folder = Path(tempfile.mkdtemp(prefix=f"trunkline-{purpose}-", dir=parent))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        # A process that is just ending may still write into it.
        shutil.rmtree(folder, ignore_errors=True)
