"""
What `trunkline doctor` looks at, one function per check.

A check says what it found and, when that is not right, the command that puts it right. It changes nothing.
"""

from __future__ import annotations

import os
import stat
import sys
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from trunkline.cli.client import Client
from trunkline.cli.failures import ApiError, CliError

MINIMUM_PYTHON = (3, 11)
# Older ones can corrupt a write-ahead log under several connections.
MINIMUM_SQLITE = (3, 51, 3)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Check(NamedTuple):
    name: str
    ok: bool
    found: str
    fix: str = ""


def check_python(found: tuple[int, ...] = sys.version_info[:3]) -> Check:
    return Check(
        "python",
        found >= MINIMUM_PYTHON,
        _dotted(found),
        f"Install Python {_dotted(MINIMUM_PYTHON)} or later, then: make setup",
    )


def check_sqlite(apsw_version: str | None = None) -> Check:
    # apsw carries its own SQLite, and the first three numbers of its version are SQLite's.
    text = apsw_version or version("apsw")
    found = tuple(int(number) for number in text.split(".")[:3])
    return Check(
        "sqlite",
        found >= MINIMUM_SQLITE,
        _dotted(found),
        f"pip install 'apsw>={_dotted(MINIMUM_SQLITE)}'",
    )


def check_data_folder(folder: Path) -> Check:
    """It can be written to, or can be made."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    usable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    found = f"{folder} is writable" if folder.is_dir() else f"{folder} will be made by: trunkline up"
    if usable:
        return Check("data folder", ok=True, found=found)
    reason = f"{existing} is not writable" if existing.is_dir() else f"{existing} is not a folder"
    return Check(
        "data folder", ok=False, found=reason, fix="Choose another one with --data or TRUNKLINE_DATA"
    )


def check_key_file(key_file: Path) -> Check:
    """Nobody but the owner can read it."""
    try:
        mode = stat.S_IMODE(key_file.stat().st_mode)
    except FileNotFoundError:
        return Check("key file", ok=True, found="none yet; it is made on the first start")
    except OSError as error:
        return Check(
            "key file", ok=False, found=str(error.strerror), fix=f"Check the rights of {key_file.parent}"
        )
    return Check("key file", not mode & _OTHERS, f"{key_file} has mode {mode:o}", f"chmod 600 {key_file}")


def check_server(client: Client) -> list[Check]:
    """It answers, and it is ready to take work; the second is asked only of one that answers."""
    try:
        client.get("/livez")
    except CliError as error:
        return [Check("server", ok=False, found=error.what, fix=error.fix or "")]
    reachable = Check("server", ok=True, found=client.url)
    try:
        client.get("/readyz")
    except ApiError as error:
        return [reachable, Check("ready", ok=False, found=error.what, fix=error.fix or "")]
    return [reachable, Check("ready", ok=True, found="it takes work")]


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
