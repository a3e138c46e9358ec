"""A report of `agents check` as it is printed; each form but the table has a separate module."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.rendering.output import Cell, note, print_fields, print_json, print_table, print_text

if TYPE_CHECKING:
    import msgspec

    from trunkline.agents.check_reports import AgentCheckReport, AgentFinding, Evidence
    from trunkline.cli.rendering import check_junit, check_markdown
else:
    msgspec = lazy_module("msgspec")
    check_junit = lazy_module("trunkline.cli.rendering.check_junit")
    check_markdown = lazy_module("trunkline.cli.rendering.check_markdown")

Form = Literal["table", "json", "junit", "md"]

_STYLES = {"passed": "green", "failed": "bold red", "warning": "yellow", "skipped": "dim"}
_MOST_LINE_CHARACTERS = 300


class ProgressLine:
    """Shows the current check on stderr: on a terminal each one, elsewhere only the start."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._redraws = sys.stderr.isatty()
        self._is_said = False

    def show(self, done: int, total: int, name: str) -> None:
        if self._redraws:
            sys.stderr.write(f"\r\x1b[K[{done + 1}/{max(total, done + 1)}] {name}")
            sys.stderr.flush()
        elif not self._is_said:
            # Not before something is asked: an address that is refused may hold a password.
            note(f"Checking {self._url} ...")
            self._is_said = True

    def clear(self) -> None:
        if self._redraws:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def print_report(report: AgentCheckReport, form: Form) -> None:
    match form:
        case "json":
            print_json(msgspec.to_builtins(report))
        case "junit":
            print_text(check_junit.junit_xml(report))
        case "md":
            print_text(check_markdown.markdown(report))
        case "table":
            _print_table(report)


def _print_table(report: AgentCheckReport) -> None:
    # The checker lists what has to be done first.
    rows = [
        [
            Cell(found.verdict, _STYLES[found.verdict]),
            found.id,
            _line(found.seen if found.verdict != "passed" else found.title),
        ]
        for found in report.findings
    ]
    print_table(("VERDICT", "CHECK", "RESULT"), rows)
    for found in report.findings:
        if found.verdict in ("failed", "warning"):
            _print_finding(found)
    print_text("")
    print_fields(
        [
            ("agent", report.agent),
            ("url", report.url),
            ("protocol", report.protocol),
            ("chosen", report.chosen),
        ]
    )
    print_text(report.summary)
    _note_what_is_left(report)


def _print_finding(found: AgentFinding) -> None:
    print_text(f"\n{found.verdict}: {found.title} ({found.id})")
    print_fields(
        [
            ("expected", found.expected),
            ("seen", _line(found.seen)),
            ("fix", found.fix),
            ("guide", found.guide),
        ]
    )
    for evidence in found.evidence:
        _print_evidence(evidence)


def _print_evidence(evidence: Evidence) -> None:
    request, response = evidence.request, evidence.response
    print_text(f"  > {request.method} {request.url}")
    if request.body:
        print_text(f"  > {_line(request.body)}")
    if response is not None:
        print_text(f"  < HTTP {response.status} {response.headers.get('content-type', '')}".rstrip())
        if response.body:
            print_text(f"  < {_line(response.body)}")
    if evidence.error is not None:
        print_text(f"  < {_line(evidence.error)}")


def _note_what_is_left(report: AgentCheckReport) -> None:
    if not report.is_conclusive:
        note("Not enough evidence, because the agent responds only to messages. Run the check with --active.")
    elif not report.active and report.passed:
        note("The agent received no work. To also check its responses, use --active.")
    missing = [one for one in report.attestations if not one.attested]
    # These are about migrating to it.
    if missing and report.passed and report.protocol == "jsonrpc-2.0":
        titles = "; ".join(one.title for one in missing)
        note(f"Not confirmed yet: {titles}. Confirm with: {missing[0].how}")


def _line(text: str) -> str:
    """On one line, without anything that moves the cursor: an agent has written it."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    words = " ".join(shown.split())
    return words if len(words) <= _MOST_LINE_CHARACTERS else f"{words[:_MOST_LINE_CHARACTERS]}…"
