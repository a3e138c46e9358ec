"""The prose linter reports what its rules reject, in Markdown and in the texts of the web UI."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).resolve().parents[2]


class Sample(msgspec.Struct):
    rejected: str = msgspec.field(name="from")


class Rule(msgspec.Struct):
    pattern: str
    specs: list[Sample]


class Rules(msgspec.Struct):
    rules: list[Rule]


def test_every_rule_reports_its_sample_in_a_page(tmp_path: Path) -> None:
    rules = msgspec.yaml.decode((ROOT / "prose" / "rules.yml").read_bytes(), type=Rules).rules
    page = tmp_path / "page.md"
    page.write_text("".join(f"{rule.specs[0].rejected}\n\n" for rule in rules))

    reported = reported_lines(page)

    assert [rule.pattern for line, rule in enumerate(rules) if 2 * line + 1 not in reported] == []


@pytest.mark.parametrize(
    "sentence",
    [
        "There is no agent with this name.",
        "The lease is no longer valid.",
        "One call is enough, and there is no limit.",
    ],
)
def test_an_idiomatic_negation_is_not_reported(sentence: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{sentence}\n")

    assert reported_lines(page) == set()


def test_texts_of_the_web_ui_are_linted_and_its_comments_are_not(tmp_path: Path) -> None:
    view = tmp_path / "View.tsx"
    view.write_text(
        'import { anew } from "./anew";\n'
        "// Rendered anew.\n"
        "export const View = ({ name }: { name: string }) => (\n"
        '  <p title="Start anew">\n'
        "    Nothing was found, so\n"
        "    start anew\n"
        "    {`Open ${name} anew`}\n"
        "  </p>\n"
        ");\n"
    )

    assert reported_lines(view) == {4, 6, 7}


def test_a_pending_path_exists() -> None:
    lines = (ROOT / "prose" / "pending.txt").read_text().splitlines()

    assert [line for line in lines if not line.startswith("#") and not (ROOT / line).exists()] == []


def reported_lines(path: Path) -> set[int]:
    linter = subprocess.run(
        [sys.executable, "-m", "prose.lint", str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    lines = {
        int(line) for line in re.findall(rf"^{re.escape(str(path))}:(\d+):", linter.stdout, re.MULTILINE)
    }
    assert linter.returncode == (1 if lines else 0), linter.stdout + linter.stderr
    return lines
