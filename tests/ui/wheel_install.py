"""
Trunkline as a user has it: a wheel with the page inside, installed apart from the checkout.

With `TRUNKLINE_UI_FOLDER` the checkout itself is run with that build of the page: what one wants while writing one.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from trunkline.cli.demo.processes import running
from trunkline.wiring import Role

ROOT = Path(__file__).parents[2]
UI_FOLDER = "TRUNKLINE_UI_FOLDER"


def installed_wheel(session: Path) -> Path:
    """The folder to import from; the first that asks builds and installs it, for all processes of the session."""
    site = session / "site"
    with (session / "wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not site.exists():
            wheel = _build_wheel(session / "wheel")
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
            _run(*pip, "--no-deps", "--no-compile", "--target", str(session / "unpacked"), str(wheel))
            (session / "unpacked").rename(site)
    return site


def _build_wheel(folder: Path) -> Path:
    _run(sys.executable, str(ROOT / "ui" / "build.py"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    _run(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    return wheel


@contextmanager
def trunkline_up(
    session: Path, folder: Path, *, name: str = "trunkline", port: int = 0, flags: Sequence[str] = ()
) -> Generator[str]:
    """The address of a `trunkline up` of its own data, as long as it runs."""
    arguments = ["up", "--port", str(port), "--data", str(folder / name), *flags]
    with _trunkline(session, arguments, folder / f"{name}.log") as url:
        yield url


@contextmanager
def trunkline_role(session: Path, folder: Path, role: Role, settings: Mapping[str, str]) -> Generator[str]:
    """The address of a process with one role of a distributed system."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        with _trunkline(session, ["serve", "--role", role, "--port", "0"], folder / f"{role}.log") as url:
            yield url


@contextmanager
def _trunkline(session: Path, arguments: Sequence[str], log: Path) -> Generator[str]:
    with pytest.MonkeyPatch.context() as patch:
        if UI_FOLDER not in os.environ:
            patch.setenv("PYTHONPATH", str(installed_wheel(session)))
        with running("Trunkline", ["trunkline", *arguments], log) as url:
            yield url


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
