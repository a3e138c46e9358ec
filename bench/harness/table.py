"""One line for each figure: ours, what it is held against, the ratio, and the goal."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec

_HEAD = ("figure", "ours", "against", "ratio", "goal")


class FigureRow(msgspec.Struct, frozen=True):
    figure: str
    ours: str
    against: str = ""
    ratio: str = ""
    goal: str = ""


def ratio(ours: Sequence[float], against: Sequence[float]) -> str:
    """The median of the ratios of neighbours in time: noise that lasts longer than one pair falls out."""
    return f"{median(a / b for a, b in zip(ours, against, strict=True)):.2f}"


def spread(values: Sequence[float], form: str = ".0f", unit: str = "") -> str:
    """The median, and how far the rest lies from it."""
    if len(values) == 1:
        return f"{values[0]:{form}}{unit}"
    return f"{median(values):{form}}{unit} ({min(values):{form}}-{max(values):{form}})"


def show(rows: Sequence[FigureRow]) -> None:
    show_columns(_HEAD, [(row.figure, row.ours, row.against, row.ratio, row.goal) for row in rows])


def show_columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A row with fewer cells than `head` ends with a remark, which is as wide as it is."""
    whole = [row for row in rows if len(row) == len(head)]
    widths = [max(len(row[column]) for row in (head, *whole)) for column in range(len(head))]
    widths[0] = max(len(row[0]) for row in (head, *rows))
    for number, row in enumerate((head, *rows)):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
