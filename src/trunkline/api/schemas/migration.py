"""Agents' migrations as the API takes and shows them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trunkline.api.schemas.agents import ProtocolConfig
from trunkline.api.schemas.common import JsonObject, NextCursor, Shape, Time, optional

Stage = Literal["planned", "shadow", "canary", "cut_over", "finished", "rolled_back"]
Verdict = Literal["agree", "differ", "new_failed", "old_failed", "both_failed"]
Percent = Annotated[
    float, Field(gt=0, le=100, description="Of the runs; the same ones for as long as it lasts.")
]
Words = Annotated[str, Field(max_length=2000, pattern=r"\S", description="For those who read it later.")]
Why = Annotated[str, Field(max_length=2000, description="For those who read it later.")]
Who = Annotated[
    str | None,
    Field(
        max_length=200,
        pattern=r"^[^\x00-\x1f\x7f-\x9f]*$",
        description="Who asks, where no keys are in use; otherwise it is the key's name.",
    ),
]


class MigrationTarget(Shape):
    """The new side of an agent; its credentials and limits are the agent's own."""

    url: str
    protocol: str
    protocol_config: JsonObject | None


class TargetRequest(Shape):
    """What is left out is as it was named before; or the agent's own url, and `jsonrpc-2.0`."""

    url: str | None = Field(default=None, max_length=2048)
    protocol: str | None = None
    protocol_config: ProtocolConfig | None = None


class MigrationLimits(Shape):
    """When the new side is not good enough."""

    disagreement: float = Field(
        default=0.01, ge=0, le=1, description="Share of comparisons that may disagree before a cutover."
    )
    comparisons: int = Field(
        default=20, ge=0, le=1000, description="So many at least, while the agent is shadowed."
    )
    error_rate: float = Field(
        default=0.1, ge=0, le=1, description="More failures than this share of calls roll back."
    )
    window: int = Field(default=50, ge=1, le=1000, description="Of the last so many calls.")
    calls: int = Field(default=10, ge=1, le=1000, description="Of so many at least.")
    slowdown: float = Field(
        default=3.0, ge=1, le=1000, description="Times the old side's 95th percentile that roll back."
    )
    slowest_ms: int | None = Field(
        default=None, ge=1, le=86_400_000, description="A 95th percentile that rolls back in any case."
    )


class LimitRequest(Shape):
    """Limits by their names; those that are left out stay as they are."""

    disagreement: Annotated[float, Field(ge=0, le=1), optional()] = 0
    comparisons: Annotated[int, Field(ge=0, le=1000), optional()] = 0
    error_rate: Annotated[float, Field(ge=0, le=1), optional()] = 0
    window: Annotated[int, Field(ge=1, le=1000), optional()] = 1
    calls: Annotated[int, Field(ge=1, le=1000), optional()] = 1
    slowdown: Annotated[float, Field(ge=1, le=1000), optional()] = 1
    slowest_ms: Annotated[int | None, Field(ge=1, le=86_400_000)] = None


class MigrationRequest(Shape):
    why: Why = ""
    who: Who = None


class TrialRequest(Shape):
    percent: Percent
    target: Annotated[TargetRequest, optional()] = TargetRequest()
    limits: Annotated[LimitRequest, optional()] = LimitRequest()
    why: Why = ""
    who: Who = None


class ReadyRequest(Shape):
    note: Words
    target: TargetRequest | None = None
    why: Why = ""
    who: Who = None


class CutoverRequest(Shape):
    force: bool = Field(default=False, description="Whatever is in the way; then `why` must be given.")
    why: Why = ""
    who: Who = None


class RollbackRequest(Shape):
    why: Words
    who: Who = None


class MigrationAttestation(Shape):
    who: str
    at: Time
    note: str


class MigrationState(Shape):
    """Where an agent's migration stands."""

    stage: Stage
    target: MigrationTarget | None
    percent: float
    limits: MigrationLimits
    ready: MigrationAttestation | None = Field(description="Somebody's word for what no program can check.")
    forced: bool = Field(description="Whether a refusal was overruled.")


class AgentEvent(Shape):
    """Something that has happened to an agent."""

    id: int
    agent: str = Field(description="Its name at that time.")
    kind: Literal["migration", "card_changed", "grade_changed"]
    at: Time
    who: str
    why: str
    data: MigrationState | JsonObject = Field(
        description="Of `migration`, how it stood from then on; of the others, what has changed."
    )


class AgentEventPage(Shape):
    items: list[AgentEvent]
    next_cursor: NextCursor


class MigrationChange(Shape):
    agent: str
    migration: MigrationState
    event: AgentEvent | None


class MigrationRefusal(Shape):
    agent: str
    message: str
    fix: str


class MigrationOutcome(Shape):
    changed: list[MigrationChange]
    refused: list[MigrationRefusal] = Field(description="Those that were meant and could not, and why.")
    left_alone: list[MigrationRefusal] = Field(
        description="Of a rollback: those whose migration is finished, so that there is no old side to go back to."
    )


class Offer(Shape):
    protocol: str
    evidence: str


class MigrationCheck(Shape):
    at: Time
    url: str
    protocol: str
    grade: str
    passed: bool


class Blocker(Shape):
    """Why not, and what to do about it."""

    code: Literal[
        "no_target",
        "protocol_unknown",
        "check_missing",
        "check_failed",
        "too_few_comparisons",
        "disagreement",
        "not_attested",
        "not_repeatable",
    ]
    message: str
    fix: str
    fix_command: str | None = Field(description="The command in `fix`, if it has one.")
    blocks: Literal["shadow", "cutover"]


class ChangedExpression(Shape):
    """An expression of a workflow's latest version that would read something else after the migration."""

    workflow: str
    version: int
    place: str
    expression: str
    step: str = Field(description="The step whose output it reads.")
    why: str


class SideCalls(Shape):
    """How the last calls of a side have ended."""

    calls: int
    failed: int
    slowest_ms: int | None
    median_ms: int | None


class CallsOfSides(Shape):
    old: Annotated[SideCalls, optional()] = SideCalls(calls=0, failed=0, slowest_ms=None, median_ms=None)
    new: Annotated[SideCalls, optional()] = SideCalls(calls=0, failed=0, slowest_ms=None, median_ms=None)


class MigrationEntry(Shape):
    agent: str
    url: str
    protocol: str = Field(description="As it is registered.")
    in_use: str | None = Field(description="What is spoken in fact; null: nobody has looked yet.")
    offers: list[Offer] = Field(description="What it speaks as far as a card or a check has shown.")
    workflows: list[str] = Field(description="Those that call it, in their latest version.")
    migration: MigrationState | None = Field(description="null: not begun.")
    event: AgentEvent | None = Field(description="The last change.")
    last_check: MigrationCheck | None = Field(
        description="Of the new side; of the agent itself, where there is none."
    )
    blockers: list[Blocker]
    expressions: list[ChangedExpression]
    comparisons: dict[Verdict, int] = Field(description="Of the present shadow.")
    calls: CallsOfSides = Field(description="While runs try the new side.")


class MigrationPage(Shape):
    items: list[MigrationEntry]
    next_cursor: NextCursor


class MigrationStatus(MigrationEntry):
    old_runs: int = Field(
        description="After the cutover: unfinished runs of before it, without which it can be finished."
    )


class Comparison(Shape):
    """What the two sides of a shadowed agent have answered to the same task."""

    id: str
    at: Time
    run: str
    step: str
    verdict: Verdict
    comparison: JsonObject = Field(
        description="Both protocols, and how the outputs differ, each by its path."
    )


class ComparisonPage(Shape):
    items: list[Comparison]
    next_cursor: NextCursor
