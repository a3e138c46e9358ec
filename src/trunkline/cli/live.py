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

from trunkline.cli.output import STATUS_ICONS, STATUS_STYLES
from trunkline.cli.progress import RunProgress, StepProgress

# Often enough for the tenths of a second to run.
REFRESHES_PER_SECOND = 8
# The headline, the table's head and edges, and the line about the steps that are not shown.
FRAME_LINES = 6
# Steps that have nothing to tell: the first to be left out when there are too many.
QUIET = frozenset({"PENDING", "COMPLETED", "SKIPPED", "CANCELLED"})


@contextmanager
def live_view(progress: RunProgress) -> Generator[None]:
    """Keeps `progress` on the screen, and leaves its last picture there."""

    console = Console()

    def picture() -> RenderableType:
        return draw(progress, datetime.now(UTC), rows=max(1, console.height - FRAME_LINES))

    with Live(
        console=console,
        get_renderable=picture,
        refresh_per_second=REFRESHES_PER_SECOND,
        vertical_overflow="visible",
    ):
        yield


def draw(progress: RunProgress, now: datetime, rows: int) -> RenderableType:
    """The run with at most `rows` steps: a picture higher than the screen would only scroll."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in ("STEP", "STATUS", "AGENT", "ATTEMPTS", "TIME", "DIALECT", "WHY"):
        table.add_column(
            column, overflow="fold", justify="right" if column in ("ATTEMPTS", "TIME") else "left"
        )
    shown = _shown(list(progress.steps.values()), rows)
    for step in shown:
        table.add_row(*_row(step, now))
    hidden = Counter(step.status for step in progress.steps.values())
    hidden.subtract(step.status for step in shown)
    rest = ", ".join(f"{count} {status}" for status, count in hidden.items() if count)
    return Group(_headline(progress, now), table, Text(f"and {rest}" if rest else "", style="dim"))


def _shown(steps: list[StepProgress], rows: int) -> list[StepProgress]:
    if len(steps) <= rows:
        return steps
    return [step for step in steps if step.status not in QUIET][:rows]


def _headline(progress: RunProgress, now: datetime) -> Text:
    line = Text.assemble((progress.workflow, "bold"), f"  {progress.id}  ", _status(progress.status))
    line.append(f"  {progress.took(now)}")
    if progress.reason:
        line.append(f"  {progress.reason}", style=STATUS_STYLES.get(progress.status, ""))
    return line


def _row(step: StepProgress, now: datetime) -> tuple[Text, ...]:
    return (
        Text(step.name),
        Text.assemble(_status(step.status)),
        Text(step.agent),
        Text(str(step.attempts or "")),
        Text(step.took(now)),
        Text(step.protocol),
        Text(step.reason, style="dim"),
    )


def _status(status: str) -> tuple[str, str]:
    return f"{STATUS_ICONS.get(status, ' ')} {status}", STATUS_STYLES.get(status, "")
