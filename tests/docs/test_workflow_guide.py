"""The errors that the workflow guide shows are the ones that `trunkline workflows validate` prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.blocks import blocks_of

from trunkline.cli.exit_codes import Exit

GUIDE = "docs/guides/workflows.md"
BROKEN = "broken.yaml"


def test_validate_prints_the_errors_that_the_guide_shows(tmp_path: Path) -> None:
    blocks = blocks_of(GUIDE)
    (broken,) = (block for block in blocks if block.words.get("file") == BROKEN)
    (shown,) = (block for block in blocks if "output" in block.words)
    (tmp_path / BROKEN).write_text(broken.text)
    validated = subprocess.run(
        [sys.executable, "-m", "trunkline", "workflows", "validate", BROKEN],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert validated.stdout == shown.text
    assert validated.returncode == Exit.INVALID
