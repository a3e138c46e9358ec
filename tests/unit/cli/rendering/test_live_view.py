"""The live picture of a run, drawn on consoles of different sizes."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console

from trunkline.cli.rendering.followed_run import FollowedRun, FollowedStep
from trunkline.cli.rendering.live_view import draw

NOW = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)


def picture(*steps: FollowedStep, width: int, rows: int = 20) -> list[str]:
    progress = FollowedRun("r1", "report v1", "RUNNING", steps={step.name: step for step in steps})
    console = Console(file=StringIO(), width=width)
    with console.capture() as shown:
        console.print(draw(progress, NOW, rows, narrow=width < 100))
    return shown.get().splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_what_is_one_word_stays_in_one_piece(width: int) -> None:
    step = FollowedStep(
        "ask_the_researcher",
        "Researcher",
        "WAITING",
        attempts=2,
        protocol="jsonrpc-2.0",
        reason="tries again at 12:00:07: The agent cannot be reached: Connection refused.",
        started_at=datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC),
    )
    lines = picture(step, width=width)
    assert max(map(len, lines)) <= width
    first = next(line for line in lines if "WAITING" in line)
    assert "jsonrpc-2.0" in first
    assert "5.0 s" in first
    assert ("Researcher" in first) is (width == 120)
    assert "refused." in " ".join(lines)


def test_steps_that_do_not_fit_are_counted() -> None:
    quiet = [FollowedStep(f"done_{number}", status="COMPLETED") for number in range(5)]
    lines = picture(*quiet, FollowedStep("busy", status="RUNNING"), width=120, rows=3)
    assert [line for line in lines if "busy" in line]
    assert lines[-1] == "and 5 COMPLETED"
