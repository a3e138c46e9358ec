"""The live picture of a followed run on a terminal. Imports rich, so it is imported only there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from trunkline.cli.rendering.followed_run import FollowedRun, FollowedStep
from trunkline.cli.rendering.output import STATUS_ICONS, STATUS_STYLES, harmless

COLUMNS = ("STEP", "STATUS", "AGENT", "ATTEMPTS", "TIME", "DIALECT", "WHY")
# Often enough for the tenths of a second to run.
REFRESHES_PER_SECOND = 8
# The headline, the table's head and edges, and the line about the steps that are not shown.
FRAME_LINES = 6
# Below this many columns the reasons need the room more than the agents' names, which the workflow has.
NARROW = 100
# Steps that have nothing to tell: the first to be left out when there are too many.
QUIET = frozenset({"PENDING", "COMPLETED", "SKIPPED", "CANCELLED"})


@contextmanager
def live_view(progress: FollowedRun) -> Generator[None]:
    """Keeps `progress` on the screen, and leaves its last picture there."""

    console = Console()

    def picture() -> RenderableType:
        rows = max(1, console.height - FRAME_LINES)
        return draw(progress, datetime.now(UTC), rows=rows, narrow=console.width < NARROW)

    # What does not fit on the screen is cut while it changes; the last picture is whole.
    with Live(console=console, get_renderable=picture, refresh_per_second=REFRESHES_PER_SECOND):
        yield


def draw(progress: FollowedRun, now: datetime, rows: int, *, narrow: bool = False) -> RenderableType:
    """The run with at most `rows` steps: a picture higher than the screen would only scroll."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    columns = [column for column in COLUMNS if not (narrow and column == "AGENT")]
    for column in columns:
        table.add_column(
            column,
            overflow="fold",
            justify="right" if column in ("ATTEMPTS", "TIME") else "left",
            no_wrap=column not in ("STEP", "AGENT", "WHY"),
        )
    shown = _shown(list(progress.steps.values()), rows)
    for step in shown:
        cells = _row(step, now)
        table.add_row(*(cells[column] for column in columns))
    hidden = Counter(step.status for step in progress.steps.values())
    hidden.subtract(step.status for step in shown)
    rest = ", ".join(f"{count} {status}" for status, count in hidden.items() if count)
    return Group(_headline(progress, now), table, Text(f"and {rest}" if rest else "", style="dim"))


def _shown(steps: list[FollowedStep], rows: int) -> list[FollowedStep]:
    if len(steps) <= rows:
        return steps
    return [step for step in steps if step.status not in QUIET][:rows]


def _headline(progress: FollowedRun, now: datetime) -> Text:
    line = Text.assemble((progress.workflow, "bold"), f"  {progress.id}  ", _status(progress.status))
    line.append(f"  {progress.took(now)}")
    if progress.reason:
        line.append(f"  {progress.reason}", style=STATUS_STYLES.get(progress.status, ""))
    return line


def _row(step: FollowedStep, now: datetime) -> dict[str, Text]:
    return {
        "STEP": Text(harmless(step.name)),
        "STATUS": Text.assemble(_status(step.status)),
        "AGENT": Text(harmless(step.agent)),
        "ATTEMPTS": Text(str(step.attempts or "")),
        "TIME": Text(step.took(now)),
        "DIALECT": Text(step.protocol),
        "WHY": Text(harmless(step.reason), style="dim"),
    }


def _status(status: str) -> tuple[str, str]:
    return f"{STATUS_ICONS.get(status, ' ')} {status}", STATUS_STYLES.get(status, "")
