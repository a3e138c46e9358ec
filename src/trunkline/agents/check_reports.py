"""
What a check of an agent has found: findings with their evidence, a grade, and what only people can attest.

    Report      of one check: the address and the dialect that were checked, when, and everything below
      Finding   one question that was asked, and the answer: passed, failed, warning or skipped
        Evidence    a request and its response as they were on the wire, redacted and cut
      Attestation   what no program can see
      grade     A … F, by one table

Pure, and below everything that makes, keeps or shows a report.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import msgspec

from trunkline.jsontypes import JsonObject, encode

# `warning`: what is only recommended is not kept. `skipped`: it could not be asked, or does not apply.
Verdict = Literal["passed", "failed", "warning", "skipped"]
Level = Literal["required", "recommended"]
# `?`: nothing was learned of how the agent answers, because it answered no request of a check without messages.
Grade = Literal["A", "B", "C", "D", "F", "?"]
# The values of `input_mode` whose messages an active check can send.
CheckedInputMode = Literal["json", "text", "data"]

NO_EVIDENCE: Grade = "?"
GRADES: tuple[Grade, ...] = tuple(grade for grade in get_args(Grade) if grade != NO_EVIDENCE)
# In which findings are listed: what has to be done comes first.
VERDICTS: tuple[Verdict, ...] = ("failed", "warning", "passed", "skipped")
# The first line that holds: at most so many failures, at most so many warnings.
_GRADING: tuple[tuple[Grade, int, int | None], ...] = (
    ("A", 0, 0),
    ("B", 0, 3),
    ("C", 0, None),
    ("D", 2, None),
)
PASSING: frozenset[Grade] = frozenset({"A", "B", "C"})


# Checked first, in this order. If one of them fails, the agent cannot be called in this protocol, and the other checks
# make no sense.
GATES = ("reachable", "protocol-clear", "allowed", "address", "accepts-json", "speaks-protocol")


class CheckTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Another endpoint of an agent than the registered one: its url and protocol."""

    url: str
    protocol: str = "auto"
    protocol_config: JsonObject | None = None


class CheckSample(msgspec.Struct, frozen=True, kw_only=True):
    """What the messages of an active check say: something that the agent can work on."""

    # Travels as JSON; and what travels as plain text.
    input: JsonObject
    text: str

    @property
    def json_text(self) -> str:
        return encode(self.input).decode()


# The sample message of the migration guide.
DEFAULT_SAMPLE = CheckSample(input={"query": "test query"}, text="This is a check. Say hello.")


class EvidenceRequest(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    url: str
    headers: dict[str, str] = {}
    body: str = ""


class EvidenceResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    headers: dict[str, str] = {}
    body: str = ""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange with the agent. Without a whole response there is an `error` that says why."""

    request: EvidenceRequest
    duration_ms: float
    response: EvidenceResponse | None = None
    error: str | None = None
    # What was cut or could not be shown.
    notes: list[str] = []


class AgentFinding(msgspec.Struct, frozen=True, kw_only=True):
    # Stable: scripts and pages name it.
    id: str
    title: str
    group: str
    level: Level
    verdict: Verdict
    expected: str
    # What was seen; of a finding that was skipped, why.
    seen: str
    fix: str
    # The page and heading that explain it, from the root of the repository.
    guide: str
    evidence: list[Evidence] = []


class AttestationItem(msgspec.Struct, frozen=True, kw_only=True):
    """What no program can check."""

    id: str
    title: str
    attested: bool
    note: str | None = None
    # How to attest it.
    how: str


class AgentCheckReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    # The dialect that was checked, and how it was chosen.
    protocol: str
    chosen: str
    active: bool
    # RFC 3339.
    started_at: str
    duration_ms: float
    grade: Grade
    passed: bool
    findings: list[AgentFinding]
    attestations: list[AttestationItem]
    # The agent's name in the registry, where it has one.
    agent: str | None = None
    # Of the card's bytes: a card that has changed shows by it.
    card_digest: str | None = None
    # In which modes the agent was seen to read its input, the best first; empty: this was not asked, or is not clear.
    input_modes: list[CheckedInputMode] = []

    def count(self, verdict: Verdict) -> int:
        return sum(1 for finding in self.findings if finding.verdict == verdict)

    @property
    def is_conclusive(self) -> bool:
        """Whether the check has learned anything about the agent's answers."""
        return self.grade != NO_EVIDENCE

    @property
    def summary(self) -> str:
        counts = ", ".join(_counted(self.count(verdict), verdict) for verdict in VERDICTS)
        if not self.is_conclusive:
            return f"Not enough evidence; run with --active: {counts}"
        return f"Grade {self.grade}: {counts}"

    def failed_gates(self) -> list[AgentFinding]:
        """Why the agent cannot be called at all."""
        return [finding for finding in self.failures() if finding.id in GATES]

    def failures(self) -> list[AgentFinding]:
        return [finding for finding in self.findings if finding.verdict == "failed"]


def grade_of(verdicts: Iterable[Verdict], *, gates_passed: bool = True) -> Grade:
    """
    A: everything is kept; B, C: all that is required; D: all but one or two things; F: less.

    Not `gates_passed`: the agent could not be asked, or did not speak the dialect at all, which is an F.
    """
    found = list(verdicts)
    failures, warnings = found.count("failed"), found.count("warning")
    if not gates_passed or "passed" not in found:
        return "F"
    for grade, most_failures, most_warnings in _GRADING:
        if failures <= most_failures and (most_warnings is None or warnings <= most_warnings):
            return grade
    return "F"


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """What has changed between two checks of the same agent: a grade, or a card."""

    grade_before: Grade
    grade: Grade
    card_changed: bool
    # Findings that have become worse, and that have become better.
    worse: list[str]
    better: list[str]


_WORTH: dict[Verdict, int] = {"passed": 0, "warning": 1, "failed": 2}


def drift_between(before: AgentCheckReport, now: AgentCheckReport) -> Drift | None:
    """None: nothing has changed, or the two asked different questions and cannot be compared."""
    if (before.url, before.protocol, before.active) != (now.url, now.protocol, now.active):
        return None
    card_changed = before.card_digest != now.card_digest
    if before.grade == now.grade and not card_changed:
        return None
    worse, better = _changes(before.findings, now.findings)
    return Drift(
        grade_before=before.grade, grade=now.grade, card_changed=card_changed, worse=worse, better=better
    )


def _changes(before: Sequence[AgentFinding], now: Sequence[AgentFinding]) -> tuple[list[str], list[str]]:
    known: dict[str, Verdict] = {finding.id: finding.verdict for finding in before}
    worse: list[str] = []
    better: list[str] = []
    for finding in now:
        earlier, present = _WORTH.get(known.get(finding.id, "skipped")), _WORTH.get(finding.verdict)
        if earlier is not None and present is not None and earlier != present:
            (worse if present > earlier else better).append(finding.id)
    return worse, better


def _counted(count: int, verdict: Verdict) -> str:
    return f"{count} {verdict}{'s' if verdict == 'warning' and count != 1 else ''}"
