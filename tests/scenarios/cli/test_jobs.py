"""`trunkline runs bulk` and `trunkline jobs`."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from tests.scenarios.cli.test_command_line import Trunkline, trunkline

__all__ = ["trunkline"]

pytestmark = pytest.mark.anyio


async def test_the_command_line_counts_acts_and_shows_jobs(trunkline: Trunkline, tmp_path: Path) -> None:
    file = tmp_path / "quick.yaml"
    file.write_text("{name: quick, steps: {a: {set: {x: 1}}}}")
    for _ in range(2):
        assert (await trunkline("run", str(file), "--label", "batch:cli", "--wait", "60s")).code == 0
    where = ("--workflow", "quick", "--label", "batch:cli")
    counted = await trunkline("runs", "bulk", "label", *where, "--set", "team:cli", "--dry-run")
    assert (counted.code, counted.out.strip()) == (0, "label applies to 2 runs")
    done = await trunkline("runs", "bulk", "label", *where, "--set", "team:cli", "--remove", "batch")
    assert done.code == 0, done.err
    assert "COMPLETED  2 of 2" in done.out
    found = (await trunkline("runs", "list", "--label", "team:cli", "--json")).json
    items = found["items"]
    assert isinstance(items, list)
    assert len(cast("list[object]", items)) == 2
    job = done.out.split()[1]
    assert job in (await trunkline("jobs", "list")).out
    assert "2 of 2" in (await trunkline("jobs", "show", job)).out
    assert (await trunkline("jobs", "cancel", job)).code == 4


async def test_bulk_without_a_condition_is_refused(trunkline: Trunkline) -> None:
    refused = await trunkline("runs", "bulk", "cancel")
    assert refused.code == 7
    assert "filter" in refused.err
