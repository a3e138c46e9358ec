"""
The references say what the program does: what can be generated is, and what can be checked is here.

Code blocks and links of all pages are checked in tests/docs.

Write the generated parts again with: make docs
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from cyclopts import App
from pydantic_core import PydanticUndefined

from trunkline.cli.app import build_app
from trunkline.cli.exit_codes import Exit
from trunkline.messages import ERROR_CODES, ErrorCode
from trunkline.settings import Settings
from trunkline.telemetry import names
from trunkline.telemetry.metrics import Metrics
from trunkline.workflow import format_duration

ROOT = Path(__file__).parents[2]
ERROR_CODES_FILE = ROOT / "docs/reference/error-codes.md"
OPERATING_FILE = ROOT / "docs/guides/operating.md"

_SETTINGS_BEGIN = "<!-- settings: written by make docs -->\n"
_SETTINGS_END = "<!-- end of settings -->\n"


# --- what is generated


def error_codes_page() -> str:
    lines = [
        "# Error codes",
        "",
        "Written by `make docs` from `src/trunkline/messages/errors.py`.",
        "",
        "`error.code` of a step or a run is one of these. They are also what a retry policy's",
        "[`on`](../guides/workflows.md#retry) can name. *Reached the agent* says what is known of the request:",
        "",
        "- **no**: it certainly never reached the agent;",
        "- **maybe**: it was sent, and no answer came; another attempt repeats the same message, with the same id;",
        "- **yes**: the agent answered; another attempt is a new message, with a new id.",
        "",
        "The `fix` is what an error says unless the place that raises it knows better.",
        "",
        "| code | reached the agent | fix |",
        "|---|---|---|",
        *(f"| `{name}` | {_reached(code)} | {code.fix} |" for name, code in ERROR_CODES.items()),
    ]
    return "\n".join(lines) + "\n"


def _reached(code: ErrorCode) -> str:
    return "yes" if code.answered else "maybe" if code.sent else "no"


def settings_table() -> str:
    rows = [
        f"| `{name}` | {_default(field.default)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows]) + "\n"


def _default(value: object) -> str:
    if value is PydanticUndefined or value in {None, ()}:
        return "–"
    return f"`{format_duration(value) if isinstance(value, timedelta) else value}`"


def operating_page() -> str:
    """The guide with its settings as they are now."""
    before, _, rest = OPERATING_FILE.read_text().partition(_SETTINGS_BEGIN)
    _, _, after = rest.partition(_SETTINGS_END)
    return f"{before}{_SETTINGS_BEGIN}\n{settings_table()}\n{_SETTINGS_END}{after}"


def test_the_error_codes_are_those_of_the_program() -> None:
    assert ERROR_CODES_FILE.read_text() == error_codes_page()


def test_the_settings_are_those_of_the_program() -> None:
    assert OPERATING_FILE.read_text() == operating_page()


# --- what is checked


def first_column(heading: str) -> set[str]:
    """What the first column of a section's table of the guide names."""
    section = OPERATING_FILE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_the_events_in_the_guide_are_those_that_are_logged() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    logged = {getattr(names, name) for name in re.findall(r"\bnames\.([A-Z_]+)\b", source)}
    assert first_column("Logs") == logged


def test_the_metrics_in_the_guide_are_those_of_the_program() -> None:
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
        if not name.startswith("-"):
            inner = commands(app[name])
            found += [[name, *rest] for rest in inner] or [[name]]
    return found
