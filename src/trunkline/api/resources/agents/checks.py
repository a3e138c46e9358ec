"""Checks of agents: requests and reports."""

from __future__ import annotations

from typing import Annotated, TypedDict, cast

import msgspec
from msgspec import Meta

from trunkline.agents.check_reports import (
    DEFAULT_SAMPLE,
    AgentFinding,
    CheckedInputMode,
    CheckSample,
    Grade,
    Level,
    Verdict,
)
from trunkline.api.resources.common import JsonMapping, NextCursor, Timestamp
from trunkline.clock import rfc3339
from trunkline.jsontypes import JsonObject, decode
from trunkline.stores.port.agents.agent_events import CheckRecord


class CheckRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    active: Annotated[
        bool, Meta(description="Whether to run the active checks, which send real messages to the agent.")
    ] = False
    protocol: Annotated[
        str | None,
        Meta(description="Protocol to check, at the same address. Defaults to the registered protocol."),
    ] = None
    input: Annotated[
        JsonMapping | None,
        Meta(
            description="Input of the test messages, for an agent that does not understand the default query."
        ),
    ] = None
    text: Annotated[str | None, Meta(description="Text of the plain-text test messages.")] = None

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
    """One exchange with the agent, redacted and truncated."""

    request: CheckedRequest
    duration_ms: float
    response: Annotated[CheckedResponse | None, Meta(description="Null if no complete response arrived.")]
    error: Annotated[str | None, Meta(description="Why there is no response.")]
    notes: Annotated[list[str], Meta(description="What was truncated or cannot be shown.")]


class CheckFinding(TypedDict):
    id: Annotated[str, Meta(description="Id of the check. See the reference page Checks.")]
    title: str
    group: str
    level: Level
    verdict: Verdict
    expected: str
    seen: Annotated[str, Meta(description="What the check observed, or why it was skipped.")]
    fix: str
    guide: Annotated[str, Meta(description="Path of the documentation page that explains the check.")]
    evidence: list[CheckEvidence]


class CheckAttestation(TypedDict):
    """A requirement that no check can verify and that a person attests."""

    id: str
    title: str
    attested: bool
    note: str | None
    how: str


class CheckReport(TypedDict):
    id: str
    url: str
    protocol: Annotated[str, Meta(description="The protocol that was checked.")]
    chosen: Annotated[str, Meta(description="Why this protocol was chosen.")]
    active: bool
    started_at: Timestamp
    duration_ms: float
    grade: Grade
    passed: Annotated[bool, Meta(description="Whether all required checks passed.")]
    findings: list[CheckFinding]
    attestations: list[CheckAttestation]
    agent: str | None
    input_modes: Annotated[
        list[CheckedInputMode],
        Meta(description="Modes in which the agent read its input. Empty if unknown, or without `active`."),
    ]
    card_digest: Annotated[str | None, Meta(description="Digest of the card. Null if the agent has no card.")]


class CheckSummary(TypedDict):
    id: str
    at: Timestamp
    url: str
    protocol: str
    active: bool
    grade: Grade
    passed: bool
    failed: Annotated[list[str], Meta(description="Ids of the failed checks.")]
    warnings: list[str]


class CheckPage(TypedDict):
    items: list[CheckSummary]
    next_cursor: NextCursor


class _Findings(msgspec.Struct):
    """The part of a report that a summary needs."""

    findings: list[AgentFinding]


_reports = msgspec.json.Decoder(_Findings)


def check_report(record: CheckRecord) -> CheckReport:
    # The checker encoded it; only the id is not in it.
    report = cast("JsonObject", decode(record.report))
    return cast("CheckReport", {"id": record.id, "input_modes": [], **report})


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
