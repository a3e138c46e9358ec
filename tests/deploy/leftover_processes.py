"""What is still running of all that was started with a temporary folder of its own."""

from __future__ import annotations

from pathlib import Path


def processes_with(temporary: Path) -> list[str]:
    """The commands of processes that have the folder as TMPDIR in their environment."""
    mark = f"TMPDIR={temporary}".encode()
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found
