"""
Runs the prose linter: `make prose`, and thereby `make check`.

    python -m prose.lint            the documentation, the texts of the web UI, and the help of the command line
    python -m prose.lint PATH ...   these files

The linter is textlint with the rules of `rules.yml`. Its packages are pinned in `package-lock.json` and installed here
at the first run. `pending.txt` lists the paths that are not linted yet. The help of the command line is linted as
`docs/reference/commands.md`, which is generated from it.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from ui.build import find_npm

HOME = Path(__file__).resolve().parent
LINTED = ("*.md", "docs/**/*.md", "ui/src/**/*.ts", "ui/src/**/*.tsx")


def lint(paths: list[str]) -> int:
    """Lint these paths and print what was found; 0 if it was nothing."""
    npm = find_npm()
    if npm is None:
        sys.stderr.write("The prose linter needs Node.js with npm, and none was found. Install Node.js.\n")
        return 1
    # What npm runs finds the same Node.js.
    environment = os.environ | {"PATH": f"{Path(npm[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    npm = [*npm, "--prefix", str(HOME), "--silent"]
    _install(npm, environment)
    return subprocess.run([*npm, "run", "lint", "--", *paths], env=environment, check=False).returncode


def _install(npm: list[str], environment: dict[str, str]) -> None:
    locked, installed = HOME / "package-lock.json", HOME / "node_modules" / ".package-lock.json"
    with (HOME / ".lock").open("w") as lock:
        # Two installations at the same time would delete each other's files.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.exists() or installed.stat().st_mtime < locked.stat().st_mtime:
            sys.stderr.write("Installing the prose linter (once) ...\n")
            subprocess.run([*npm, "ci", "--no-audit", "--no-fund"], env=environment, check=True)


if __name__ == "__main__":
    sys.exit(lint(sys.argv[1:] or list(LINTED)))
