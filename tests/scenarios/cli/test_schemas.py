"""`trunkline schemas`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scenarios.cli.test_command_line import Trunkline, trunkline

__all__ = ["trunkline"]

pytestmark = pytest.mark.anyio


async def test_the_command_line_saves_shows_and_deletes_schemas(trunkline: Trunkline, tmp_path: Path) -> None:
    file = tmp_path / "review.schema.yaml"
    file.write_text("type: object\nrequired: [score]\n")
    assert "review" in (await trunkline("schemas", "apply", str(file))).out
    assert "review" in (await trunkline("schemas", "list")).out
    assert '"score"' in (await trunkline("schemas", "show", "review")).out
    assert (await trunkline("schemas", "delete", "review")).code == 0
    assert (await trunkline("schemas", "show", "review")).code != 0
