"""
The web UI's types of the API, generated from its OpenAPI document: `make ui-types` writes them, a test compares them.

    python -m tests.ui.api_types
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.interop.environments import NODE, UI_TYPES, environment

ROOT = Path(__file__).parents[2]
OPENAPI = ROOT / "tests" / "public" / "openapi.json"
TYPES = ROOT / "ui" / "src" / "api" / "schema.d.ts"


def generated() -> str:
    program = environment(UI_TYPES) / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
    done = subprocess.run([NODE, program, OPENAPI], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    TYPES.write_text(generated(), "utf-8")
