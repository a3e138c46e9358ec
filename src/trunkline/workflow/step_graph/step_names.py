"""Names that no step of a definition can have: of blocks, branches, items of loops, and compensations."""

from __future__ import annotations

import re

from trunkline.workflow.document.locations import Path

BLOCK_SEPARATOR = "/"


def block_path(parent: str | None, step: str) -> str:
    """The block inside a step of the workflow, or of one of its blocks."""
    return step if parent is None else f"{parent}{BLOCK_SEPARATOR}{step}"


_ITEM = re.compile(r"([^\[\]]+)\[(0|[1-9][0-9]{0,8})\]")


def item_name(step: str, index: int) -> str:
    return f"{step}[{index}]"


def step_of_item(name: str) -> str:
    """The step that an item belongs to; the name of a step is its own."""
    return name.partition("[")[0]


def item_index(item: str) -> int:
    return int(item.partition("[")[2][:-1])


def parse_item_name(name: str) -> tuple[str, int] | None:
    """The step and the index of an item's name; None if the name is not an item's."""
    match = _ITEM.fullmatch(name)
    return None if match is None else (match[1], int(match[2]))


def branch_name(index: int) -> str:
    """A name that no step of a definition can have."""
    return f"branch-{index + 1}"


# The key of a step.
COMPENSATE = "compensate"
_COMPENSATION = f"{COMPENSATE}:"


def compensation_name(step: str) -> str:
    """What undoes a step, or an item of one: `compensate:book`, `compensate:book[17]`."""
    return f"{_COMPENSATION}{step}"


def compensated_step(name: str) -> str | None:
    """The step or item that a compensation undoes; None: it is not a compensation's name."""
    return name.removeprefix(_COMPENSATION) if name.startswith(_COMPENSATION) else None


def step_path(name: str) -> Path:
    """Where the document has a step, a compensation, or a branch."""
    compensated = compensated_step(name)
    if compensated is not None:
        return "steps", compensated, COMPENSATE
    before, _, number = name.partition("-")
    is_branch = before == "branch" and bool(number)
    return ("switch", int(number) - 1) if is_branch else ("steps", name)
