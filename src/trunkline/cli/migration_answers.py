"""What the server answers about agents that move."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from trunkline.jsontypes import JsonObject


class Target(TypedDict):
    url: str
    protocol: str
    protocol_config: JsonObject | None


class Attestation(TypedDict):
    who: str
    at: str
    note: str


class Migration(TypedDict):
    stage: str
    target: Target | None
    percent: float
    limits: dict[str, float | None]
    ready: Attestation | None
    forced: bool


class AgentEvent(TypedDict):
    id: int
    agent: str
    kind: str
    at: str
    who: str
    why: str
    data: JsonObject


class Change(TypedDict):
    agent: str
    migration: Migration
    event: AgentEvent | None


class Refusal(TypedDict):
    agent: str
    message: str
    fix: str


class Outcome(TypedDict):
    changed: list[Change]
    refused: list[Refusal]
    left_alone: list[Refusal]


class Offer(TypedDict):
    protocol: str
    evidence: str


class LastCheck(TypedDict):
    at: str
    url: str
    protocol: str
    grade: str
    passed: bool


class Blocker(TypedDict):
    code: str
    message: str
    fix: str
    blocks: str


class ChangedExpression(TypedDict):
    workflow: str
    version: int
    place: str
    expression: str
    step: str
    why: str


class SideCalls(TypedDict):
    calls: int
    failed: int
    slowest_ms: int | None
    median_ms: int | None


class PlanEntry(TypedDict):
    agent: str
    url: str
    protocol: str
    in_use: str | None
    offers: list[Offer]
    workflows: list[str]
    migration: Migration | None
    event: AgentEvent | None
    last_check: LastCheck | None
    blockers: list[Blocker]
    expressions: list[ChangedExpression]
    comparisons: dict[str, int]
    calls: dict[str, SideCalls]


class Status(PlanEntry):
    old_runs: int


class Difference(TypedDict, total=False):
    path: str
    old: str
    new: str


class Compared(TypedDict, total=False):
    differences: list[Difference]
    more: int
    old_error: str
    new_error: str


class Comparison(TypedDict):
    id: str
    at: str
    run: str
    step: str
    verdict: str
    comparison: Compared
