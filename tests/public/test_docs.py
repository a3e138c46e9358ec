"""
The references say what the program does: what can be generated is, and what can be checked is here.

Code blocks and links of all pages are checked in tests/docs.

Write the generated parts again with: make docs
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cyclopts import App
from tests.public.reference_pages import PAGES, REFERENCE

from trunkline.cli.app import build_app
from trunkline.cli.exit_codes import Exit
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics

ROOT = Path(__file__).parents[2]
TELEMETRY_FILE = ROOT / "docs/reference/telemetry.md"


# --- what is generated


@pytest.mark.parametrize("page", PAGES)
def test_the_page_says_what_the_program_says(page: str) -> None:
    assert (REFERENCE / page).read_text() == PAGES[page]()


# --- what is checked


def first_column(heading: str) -> set[str]:
    """What the first column of a section's table of the reference names."""
    section = TELEMETRY_FILE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_the_events_in_the_reference_are_those_that_are_logged() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    logged = {getattr(log_events, name) for name in re.findall(r"\blog_events\.([A-Z_]+)\b", source)}
    assert first_column("Log events") == logged


def test_the_metrics_in_the_reference_are_those_of_the_program() -> None:
    families = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in Metrics().registry.collect()
    }
    assert first_column("Metrics") == families


def test_every_exit_code_is_documented() -> None:
    page = (ROOT / "docs/reference/cli.md").read_text()
    assert [code for code in Exit if f"| {code.value} |" not in page] == []


def test_every_command_is_documented() -> None:
    page = (ROOT / "docs/reference/cli.md").read_text()
    rows = [
        re.findall(r"`([a-z -]+)`", line.split("|")[1]) for line in page.splitlines() if line[:3] == "| `"
    ]
    documented = {f"{row[0].split()[0]} {name.split()[-1]}" for row in rows for name in row}
    assert documented == {f"{words[0]} {words[-1]}" for words in commands(build_app())}


def commands(app: App) -> list[list[str]]:
    """Every command by the words that name it."""
    found: list[list[str]] = []
    for name in app:
        if not name.startswith("-") and app[name].show:
            inner = commands(app[name])
            found += [[name, *rest] for rest in inner] or [[name]]
    return found
