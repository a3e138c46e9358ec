"""Checks of agents: what to check, and the reports."""

from __future__ import annotations

from typing import Annotated, TypedDict, cast

import msgspec
from msgspec import Meta

from trunkline.agents.check_reports import DEFAULT_SAMPLE, AgentFinding, CheckSample, Grade, Level, Verdict
from trunkline.api.resources.common import JsonMapping, NextCursor, Timestamp
from trunkline.clock import rfc3339
from trunkline.jsontypes import JsonObject, decode
from trunkline.stores.port.agent_events import CheckRecord


class CheckRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    active: Annotated[
        bool, Meta(description="Whether messages may be sent, which an agent takes for work.")
    ] = False
    protocol: Annotated[
        str | None,
        Meta(description="What to check it in, at the same address; null: what it is registered with."),
    ] = None
    input: Annotated[
        JsonMapping | None,
        Meta(description="What the messages say, for an agent that can do nothing with the usual query."),
    ] = None
    text: Annotated[str | None, Meta(description="What the messages say that are plain text.")] = None

    def sample(self) -> CheckSample:
        return CheckSample(input=self.input or DEFAULT_SAMPLE.input, text=self.text or DEFAULT_SAMPLE.text)


class CheckedRequest(TypedDict):
    method: str
    url: str
    headers: dict[str, str]
    body: str


class CheckedResponse(TypedDict):
    status: int
    headers: dict[str, str]
    body: str


class CheckEvidence(TypedDict):
    """One exchange with the agent, redacted and cut."""

    request: CheckedRequest
    duration_ms: float
    response: Annotated[CheckedResponse | None, Meta(description="null: no whole answer came.")]
    error: Annotated[str | None, Meta(description="Why not.")]
    notes: Annotated[list[str], Meta(description="What is cut, or cannot be shown.")]


class CheckFinding(TypedDict):
    id: Annotated[str, Meta(description="Which check it was; docs/reference/checks.md lists them.")]
    title: str
    group: str
    level: Level
    verdict: Verdict
    expected: str
    seen: Annotated[str, Meta(description="What was seen, or why it was skipped.")]
    fix: str
    guide: Annotated[str, Meta(description="Where it is explained.")]
    evidence: list[CheckEvidence]


class CheckAttestation(TypedDict):
    """What no program can see."""

    id: str
    title: str
    attested: bool
    note: str | None
    how: str


class CheckReport(TypedDict):
    id: str
    url: str
    protocol: Annotated[str, Meta(description="What it was checked in.")]
    chosen: Annotated[str, Meta(description="Why in that.")]
    active: bool
    started_at: Timestamp
    duration_ms: float
    grade: Grade
    passed: Annotated[bool, Meta(description="Whether nothing has failed that is required.")]
    findings: list[CheckFinding]
    attestations: list[CheckAttestation]
    agent: str | None
    card_digest: Annotated[str | None, Meta(description="Of the card's bytes; null: it has none.")]


class CheckSummary(TypedDict):
    id: str
    at: Timestamp
    url: str
    protocol: str
    active: bool
    grade: Grade
    passed: bool
    failed: Annotated[list[str], Meta(description="Ids of the checks that have failed.")]
    warnings: list[str]


class CheckPage(TypedDict):
    items: list[CheckSummary]
    next_cursor: NextCursor


class _Findings(msgspec.Struct):
    """What a summary needs of a report."""

    findings: list[AgentFinding]


_reports = msgspec.json.Decoder(_Findings)


def check_report(record: CheckRecord) -> CheckReport:
    # The checker encoded it; only the id is not in it.
    report = cast("JsonObject", decode(record.report))
    return cast("CheckReport", {"id": record.id, **report})


def check_summary(record: CheckRecord) -> CheckSummary:
    findings = _reports.decode(record.report).findings

    def ids(verdict: Verdict) -> list[str]:
        return [found.id for found in findings if found.verdict == verdict]

    return {
        "id": record.id,
        "at": rfc3339(record.at),
        "url": record.url,
        "protocol": record.protocol,
        "active": record.active,
        # The store keeps it as a text.
        "grade": cast("Grade", record.grade),
        "passed": record.passed,
        "failed": ids("failed"),
        "warnings": ids("warning"),
    }
