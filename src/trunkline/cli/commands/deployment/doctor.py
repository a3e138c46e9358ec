"""
`trunkline doctor`: checks of this machine and of the server.

A check says what it found and, if that is wrong, the command that fixes it. It changes nothing.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import ApiError, CliError, explained
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import HERE, FolderText, Server
from trunkline.cli.rendering.output import Cell, print_json, print_table
from trunkline.cli.rest.client import Client

if TYPE_CHECKING:
    from importlib import metadata

    from trunkline import settings
else:
    metadata = lazy_module("importlib.metadata")
    settings = lazy_module("trunkline.settings")

MINIMUM_PYTHON = (3, 11)
# Older ones can corrupt a write-ahead log under several connections.
MINIMUM_SQLITE = (3, 51, 3)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def doctor(*, data: FolderText = None, server: Server = HERE) -> int:
    """
    Check this machine and the server.

    Exits with 6 if the server is unreachable, and with 7 if another check fails.

    Parameters
    ----------
    data
        Data folder to check. Default: the folder that `up` would use here.
    """
    with explained():
        found = settings.load_settings({} if data is None else {"data": data})
    local = [
        check_python(),
        check_sqlite(),
        check_data_folder(found.data),
        check_key_file(found.key_file),
    ]
    remote = check_server(server.client())
    results = local + remote
    if server.json:
        print_json({"items": [check._asdict() for check in results], "next_cursor": None})
    else:
        rows = [
            [
                check.name,
                Cell("ok", "green") if check.ok else Cell("FAIL", "red"),
                check.found,
                "" if check.ok else check.fix,
            ]
            for check in results
        ]
        print_table(("CHECK", "RESULT", "FOUND", "FIX"), rows)
    if not all(check.ok for check in local):
        return Exit.INVALID
    return Exit.OK if all(check.ok for check in remote) else Exit.UNREACHABLE


class DoctorCheck(NamedTuple):
    name: str
    ok: bool
    found: str
    fix: str = ""


def check_python(found: tuple[int, ...] = sys.version_info[:3]) -> DoctorCheck:
    return DoctorCheck(
        "python",
        found >= MINIMUM_PYTHON,
        _dotted(found),
        f"Install Python {_dotted(MINIMUM_PYTHON)} or later, then: make setup",
    )


def check_sqlite(apsw_version: str | None = None) -> DoctorCheck:
    # apsw carries its own SQLite, and the first three numbers of its version are SQLite's.
    text = apsw_version or metadata.version("apsw")
    found = tuple(int(number) for number in text.split(".")[:3])
    return DoctorCheck(
        "sqlite",
        found >= MINIMUM_SQLITE,
        _dotted(found),
        f"pip install 'apsw>={_dotted(MINIMUM_SQLITE)}'",
    )


def check_data_folder(folder: Path) -> DoctorCheck:
    """Whether it can be written to, or created."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    usable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    found = (
        f"{folder} is writable"
        if folder.is_dir()
        else f"{folder} does not exist yet; trunkline up creates it"
    )
    if usable:
        return DoctorCheck("data folder", ok=True, found=found)
    reason = f"{existing} is not writable" if existing.is_dir() else f"{existing} is not a folder"
    return DoctorCheck(
        "data folder", ok=False, found=reason, fix="Choose another folder with --data or TRUNKLINE_DATA"
    )


def check_key_file(key_file: Path) -> DoctorCheck:
    """Only the owner can read it."""
    try:
        mode = stat.S_IMODE(key_file.stat().st_mode)
    except FileNotFoundError:
        return DoctorCheck("key file", ok=True, found="does not exist yet; the first start creates it")
    except OSError as error:
        return DoctorCheck(
            "key file", ok=False, found=str(error.strerror), fix=f"Check the permissions of {key_file.parent}"
        )
    return DoctorCheck(
        "key file", not mode & _OTHERS, f"{key_file} has mode {mode:o}", f"chmod 600 {key_file}"
    )


def check_server(client: Client) -> list[DoctorCheck]:
    """Whether it responds, and if so, whether it accepts work."""
    try:
        client.get("/livez")
    except CliError as error:
        return [DoctorCheck("server", ok=False, found=error.what, fix=error.fix or "")]
    reachable = DoctorCheck("server", ok=True, found=client.url)
    try:
        client.get("/readyz")
    except ApiError as error:
        return [reachable, DoctorCheck("ready", ok=False, found=error.what, fix=error.fix or "")]
    return [reachable, DoctorCheck("ready", ok=True, found="accepts work")]


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
