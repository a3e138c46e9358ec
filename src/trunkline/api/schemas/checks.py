"""Checks of agents as the API shows them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trunkline.api.schemas.common import JsonObject, NextCursor, Shape, Time

Grade = Literal["A", "B", "C", "D", "F"]
Verdict = Literal["passed", "failed", "warning", "skipped"]


class CheckRequest(Shape):
    active: bool = Field(
        default=False, description="Whether messages may be sent, which an agent takes for work."
    )
    protocol: str | None = Field(
        default=None,
        description="What to check it in, at the same address; null: what it is registered with.",
    )

    input: JsonObject | None = Field(
        default=None,
        description="What the messages say, for an agent that can do nothing with the usual query.",
    )
    text: str | None = Field(default=None, description="What the messages say that are plain text.")


class CheckedRequest(Shape):
    method: str
    url: str
    headers: dict[str, str]
    body: str


class CheckedResponse(Shape):
    status: int
    headers: dict[str, str]
    body: str


class CheckEvidence(Shape):
    """One exchange with the agent, redacted and cut."""

    request: CheckedRequest
    duration_ms: float
    response: CheckedResponse | None = Field(description="null: no whole answer came.")
    error: str | None = Field(description="Why not.")
    notes: list[str] = Field(description="What is cut, or cannot be shown.")


class CheckFinding(Shape):
    id: str = Field(description="Which check it was; docs/reference/checks.md lists them.")
    title: str
    group: str
    level: Literal["required", "recommended"]
    verdict: Verdict
    expected: str
    seen: str = Field(description="What was seen, or why it was skipped.")
    fix: str
    guide: str = Field(description="Where it is explained.")
    evidence: list[CheckEvidence]


class CheckAttestation(Shape):
    """What no program can see."""

    id: str
    title: str
    attested: bool
    note: str | None
    how: str


class CheckReport(Shape):
    id: str
    url: str
    protocol: str = Field(description="What it was checked in.")
    chosen: str = Field(description="Why in that.")
    active: bool
    started_at: Time
    duration_ms: float
    grade: Grade
    passed: bool = Field(description="Whether nothing has failed that is required.")
    findings: list[CheckFinding]
    attestations: list[CheckAttestation]
    agent: str | None
    card_digest: str | None = Field(description="Of the card's bytes; null: it has none.")


class CheckSummary(Shape):
    id: str
    at: Time
    url: str
    protocol: str
    active: bool
    grade: Grade
    passed: bool
    failed: list[str] = Field(description="Ids of the checks that have failed.")
    warnings: list[str]


class CheckPage(Shape):
    items: list[CheckSummary]
    next_cursor: NextCursor
