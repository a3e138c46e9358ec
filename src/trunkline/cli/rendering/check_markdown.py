"""A report of `agents check` as Markdown, for an issue or a wiki: with the checklist of the migration guide."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trunkline.checker.checklist import CHECKLIST, state_of

if TYPE_CHECKING:
    from trunkline.agents.check_reports import AgentCheckReport, AgentFinding, Evidence

_BOXES = {"done": "[x]", "not done": "[ ]", "not asked": "[ ]"}
_TICKS = re.compile("`+")


def markdown(report: AgentCheckReport) -> str:
    lines = [
        f"# Check of {_plain(report.agent or report.url)}",
        "",
        f"**{report.summary}**",
        "",
        f"- address: {_code(report.url)}",
        f"- protocol: {_code(report.protocol)} ({_plain(report.chosen)})",
        f"- checks: {'all, with messages' if report.active else 'only checks that send no work'}",
        f"- at: {report.started_at}",
    ]
    for verdict, heading in (("failed", "Failed"), ("warning", "Recommended")):
        found = [finding for finding in report.findings if finding.verdict == verdict]
        if found:
            lines += ["", f"## {heading}"]
        for finding in found:
            lines += _finding(finding)
    if report.protocol == "jsonrpc-2.0":
        lines += _checklist(report)
    lines += ["", "## All checks", "", "| verdict | check | seen |", "|---|---|---|"]
    lines += [f"| {found.verdict} | `{found.id}` | {_cell(found.seen)} |" for found in report.findings]
    lines += ["", "## Confirmed by people", ""]
    lines += [f"- {'[x]' if one.attested else '[ ]'} {one.title}" for one in report.attestations]
    return "\n".join(lines)


def _checklist(report: AgentCheckReport) -> list[str]:
    lines = ["", "## Validation checklist"]
    for section, items in CHECKLIST.items():
        lines += ["", f"### {section}", ""]
        for item in items:
            state = state_of(item, report)
            note = " (not asked)" if state == "not asked" else ""
            lines.append(f"- {_BOXES[state]} {item.text}{note}")
    return lines


def _finding(found: AgentFinding) -> list[str]:
    lines = [
        "",
        f"### {found.title}",
        "",
        f"- check: `{found.id}`",
        f"- expected: {_plain(found.expected)}",
        f"- seen: {_plain(found.seen)}",
        f"- fix: {_plain(found.fix)}",
        f"- guide: {found.guide}",
    ]
    return lines + [line for evidence in found.evidence for line in _evidence(evidence)]


def _evidence(evidence: Evidence) -> list[str]:
    request, response = evidence.request, evidence.response
    lines = [f"{request.method} {request.url}", request.body]
    if response is not None:
        lines += ["", f"HTTP {response.status}", response.body]
    if evidence.error is not None:
        lines += ["", evidence.error]
    text = "\n".join(lines).strip("\n")
    # Longer than anything that an agent has put into its answer to get out of it.
    fence = "`" * max(3, 1 + max((len(ticks) for ticks in _TICKS.findall(text)), default=0))
    return ["", f"{fence}http", text, fence]


def _plain(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(text.split()))


def _cell(text: str) -> str:
    return _plain(text)


def _code(text: str) -> str:
    return f"`{text.replace('`', '')}`"
