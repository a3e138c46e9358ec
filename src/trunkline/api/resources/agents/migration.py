"""Migrations of agents: the plan, the state of each migration, its history, and the requests that change it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, NotRequired, TypedDict, cast, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.agents.check_reports import CheckedInputMode
from trunkline.agents.migration import MigrationStage, MigrationState
from trunkline.agents.migration.blockers import BlockerCode, MigrationBlocker
from trunkline.agents.migration.comparison import ComparisonVerdict
from trunkline.agents.migration.transitions import LimitChanges
from trunkline.api.resources.common import JsonMapping, NextCursor, Timestamp, stored_json
from trunkline.clock import rfc3339
from trunkline.jsontypes import JsonObject
from trunkline.services.migration.output_changes import ChangedRead
from trunkline.services.migration.plan import (
    CheckOutcome,
    EndpointCalls,
    MigrationDetail,
    MigrationPlanEntry,
)
from trunkline.services.migration.repository import BulkChangeResult, RefusedChange, StageChange
from trunkline.services.migration.states import decode_migration
from trunkline.services.migration.targets import ProposedInputMode, RequestedTarget
from trunkline.stores.port.agents.agent_events import AgentEvent, AgentEventKind, ComparisonRecord

# --- requests. The bounds only document the schema: the services validate, with better messages.

_MAX_TEXT: JsonObject = {"maxLength": 2000}
_NOT_BLANK: JsonObject = {**_MAX_TEXT, "pattern": r"\S"}
_LATER = "Recorded in the agent's history."
_Who = Annotated[
    Annotated[str, Meta(extra_json_schema={"maxLength": 200, "pattern": r"^[^\x00-\x1f\x7f-\x9f]*$"})] | None,
    Meta(
        description="Name of the person who makes the change. Used only without API keys; otherwise, the key's "
        "name is recorded."
    ),
]
_Share = Annotated[float, Meta(extra_json_schema={"minimum": 0, "maximum": 1})]
_CallCount = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": 1000})]


class TargetRequest(RequestedTarget, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    The target of a migration.

    Omitted fields keep their current values. At first, they default to the agent's url and `jsonrpc-2.0`.
    """

    url: Annotated[str, Meta(extra_json_schema={"maxLength": 2048})] | None = None
    protocol_config: (
        Annotated[JsonObject, Meta(extra_json_schema={"$ref": "#/components/schemas/JsonRpcProtocolConfig"})]
        | None
    ) = None


class LimitRequest(LimitChanges, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits to change. Omitted limits stay unchanged."""

    disagreement: _Share | UnsetType = UNSET
    comparisons: Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": 1000})] | UnsetType = UNSET
    error_rate: _Share | UnsetType = UNSET
    window: _CallCount | UnsetType = UNSET
    calls: _CallCount | UnsetType = UNSET
    slowdown: Annotated[float, Meta(extra_json_schema={"minimum": 1, "maximum": 1000})] | UnsetType = UNSET
    slowest_ms: (
        Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": 86_400_000})] | UnsetType | None
    ) = UNSET


class MigrationRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    why: Annotated[str, Meta(description=_LATER, extra_json_schema=_MAX_TEXT)] = ""
    who: _Who = None


class RolloutStageRequest(MigrationRequest, kw_only=True, forbid_unknown_fields=True):
    percent: Annotated[
        float,
        Meta(
            description="Percentage of runs. A run that is included once stays included.",
            extra_json_schema={"exclusiveMinimum": 0, "maximum": 100},
        ),
    ]
    target: TargetRequest = msgspec.field(default_factory=TargetRequest)
    limits: LimitRequest = msgspec.field(default_factory=LimitRequest)


class ReadyRequest(MigrationRequest, kw_only=True, forbid_unknown_fields=True):
    note: Annotated[str, Meta(description=_LATER, extra_json_schema=_NOT_BLANK)]
    target: TargetRequest | None = None


class MigrationCheckRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    active: Annotated[bool, Meta(description="Also send messages, which the target treats as work.")] = False


class CutoverRequest(MigrationRequest, kw_only=True, forbid_unknown_fields=True):
    force: Annotated[bool, Meta(description="Cut over despite blockers. Requires `why`.")] = False


class RollbackRequest(MigrationRequest, kw_only=True, forbid_unknown_fields=True):
    # The service rejects a request without a reason, with a better message.
    SCHEMA: ClassVar[JsonObject] = {"required": ["why"]}

    why: Annotated[str, Meta(description=_LATER, extra_json_schema=_NOT_BLANK)] = ""
    force: Annotated[bool, Meta(description="Roll back although the source cannot be called.")] = False


# --- responses


class MigrationTarget(TypedDict):
    """The target of a migration. It uses the agent's credentials and limits."""

    url: str
    protocol: str
    protocol_config: JsonMapping | None


class MigrationLimits(TypedDict):
    """Limits that block the cutover or cause an automatic rollback."""

    disagreement: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Maximum share of comparisons that disagree. A higher share blocks the cutover.",
        ),
    ]
    comparisons: Annotated[
        int,
        Meta(
            ge=0, le=1000, description="Minimum number of comparisons before the cutover of a shadowed agent."
        ),
    ]
    error_rate: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Maximum share of failed calls to the target. A higher share causes a rollback.",
        ),
    ]
    window: Annotated[
        int,
        Meta(
            ge=1,
            le=1000,
            description="Number of recent calls that `error_rate` and the latency limits look at.",
        ),
    ]
    calls: Annotated[
        int, Meta(ge=1, le=1000, description="Minimum number of calls before a limit can cause a rollback.")
    ]
    slowdown: Annotated[
        float,
        Meta(
            ge=1,
            le=1000,
            description="Maximum ratio of the target's 95th percentile latency to the source's. A higher ratio "
            "causes a rollback.",
        ),
    ]
    slowest_ms: Annotated[
        Annotated[int, Meta(ge=1, le=86_400_000)] | None,
        Meta(
            description="Maximum 95th percentile latency of the target, in milliseconds. A higher latency causes "
            "a rollback."
        ),
    ]


class MigrationAttestation(TypedDict):
    who: str
    at: Timestamp
    note: str


class MigrationStateResource(TypedDict):
    """The state of an agent's migration."""

    stage: MigrationStage
    target: MigrationTarget | None
    percent: float
    limits: MigrationLimits
    ready: Annotated[
        MigrationAttestation | None, Meta(description="The attestation of what no check can verify.")
    ]
    forced: Annotated[bool, Meta(description="Whether the cutover was forced despite blockers.")]


class AgentEventResource(TypedDict):
    """An entry in the history of an agent."""

    id: int
    agent: Annotated[str, Meta(description="The agent's name at that time.")]
    kind: AgentEventKind
    at: Timestamp
    who: str
    why: str
    data: Annotated[
        JsonMapping,
        Meta(
            description="For `migration`, the new state. For other kinds, what changed.",
            extra_json_schema={
                "anyOf": [{"$ref": "#/components/schemas/MigrationState"}, {"type": "object"}]
            },
        ),
    ]


class AgentEventPage(TypedDict):
    items: list[AgentEventResource]
    next_cursor: NextCursor


class MigrationChange(TypedDict):
    agent: str
    migration: MigrationStateResource
    event: AgentEventResource | None


class MigrationRefusal(TypedDict):
    agent: str
    message: str
    fix: str


class MigrationOutcome(TypedDict):
    changed: list[MigrationChange]
    refused: Annotated[
        list[MigrationRefusal], Meta(description="Agents that could not be changed, with the reason.")
    ]
    left_alone: Annotated[
        list[MigrationRefusal],
        Meta(
            description="For a rollback: agents whose migration is finished, so that they no longer have a "
            "source."
        ),
    ]


class Offer(TypedDict):
    protocol: str
    evidence: str


class MigrationCheck(TypedDict):
    at: Timestamp
    url: str
    protocol: str
    grade: str
    passed: bool


class Blocker(TypedDict):
    """A reason why a shadow or a cutover is not possible, and how to fix it."""

    code: BlockerCode
    message: str
    fix: str
    fix_command: Annotated[str | None, Meta(description="The command in `fix`, if there is one.")]
    blocks: Literal["shadow", "cutover"]


class ChangedExpression(TypedDict):
    """An expression in the latest version of a workflow whose value would change with the migration."""

    workflow: str
    version: int
    place: str
    expression: str
    step: Annotated[str, Meta(description="The step whose output the expression reads.")]
    why: str


class ProposedInput(TypedDict):
    """The `input_mode` that the target of an agent from Simple A2A should use."""

    mode: CheckedInputMode
    why: str
    seen: Annotated[
        list[CheckedInputMode],
        Meta(description="Modes that the target understood in the last active check. Empty if unknown."),
    ]


class EndpointCallsView(TypedDict):
    """Statistics of the recent calls to the source or the target."""

    calls: int
    failed: int
    slowest_ms: int | None
    median_ms: int | None


class CallsByEndpoint(TypedDict):
    old: NotRequired[EndpointCallsView]
    new: NotRequired[EndpointCallsView]


class MigrationEntry(TypedDict):
    agent: str
    url: str
    protocol: Annotated[str, Meta(description="The registered protocol.")]
    in_use: Annotated[
        str | None, Meta(description="The detected dialect. Null if it has not been detected yet.")
    ]
    offers: Annotated[
        list[Offer], Meta(description="Protocols that a card or a check has shown the agent to support.")
    ]
    workflows: Annotated[list[str], Meta(description="Workflows whose latest version calls the agent.")]
    migration: Annotated[MigrationStateResource | None, Meta(description="Null if no migration has started.")]
    event: Annotated[AgentEventResource | None, Meta(description="The last change of the migration.")]
    last_check: Annotated[
        MigrationCheck | None,
        Meta(description="The last check of the target, or of the agent if there is no target."),
    ]
    blockers: list[Blocker]
    expressions: list[ChangedExpression]
    comparisons: Annotated[
        dict[str, int],
        Meta(
            description="Number of comparisons of the current shadow stage, by verdict.",
            extra_json_schema={"propertyNames": {"enum": list(get_args(ComparisonVerdict))}},
        ),
    ]
    calls: Annotated[CallsByEndpoint, Meta(description="Recent calls, while some runs call the target.")]
    input_mode: Annotated[
        ProposedInput | None, Meta(description="Null unless the agent migrates from Simple A2A.")
    ]


class MigrationPage(TypedDict):
    items: list[MigrationEntry]
    next_cursor: NextCursor


class MigrationStatus(MigrationEntry):
    old_runs: Annotated[
        int,
        Meta(
            description="Unfinished runs that started before the cutover. The migration can be finished when "
            "there are none left."
        ),
    ]


class Comparison(TypedDict):
    """The answers of source and target to the same task of a shadowed agent."""

    id: str
    at: Timestamp
    run: str
    step: str
    verdict: ComparisonVerdict
    comparison: Annotated[
        JsonMapping,
        Meta(
            description="The protocols of source and target, and the differences between the outputs, by path."
        ),
    ]


class ComparisonPage(TypedDict):
    items: list[Comparison]
    next_cursor: NextCursor


# --- conversions


def migration_state(state: MigrationState | None) -> MigrationStateResource | None:
    """None if the agent has no migration."""
    return None if state is None else _state(state)


def migration_change(change: StageChange) -> MigrationChange:
    event = change.event
    return {
        "agent": change.agent,
        "migration": _state(change.state),
        "event": None if event is None else agent_event(event),
    }


def migration_outcome(outcome: BulkChangeResult) -> MigrationOutcome:
    return {
        "changed": [migration_change(change) for change in outcome.changed],
        "refused": [_refusal(each) for each in outcome.refused],
        "left_alone": [_refusal(each) for each in outcome.left_alone],
    }


def migration_entry(entry: MigrationPlanEntry) -> MigrationEntry:
    calls: CallsByEndpoint = {}
    for endpoint, ended in entry.calls.items():
        calls[endpoint] = _calls(ended)
    return {
        "agent": entry.agent,
        "url": entry.url,
        "protocol": entry.protocol,
        "in_use": entry.in_use,
        "offers": [{"protocol": offer.protocol, "evidence": offer.evidence} for offer in entry.offers],
        "workflows": entry.workflows,
        "migration": migration_state(entry.state),
        "event": None if entry.event is None else agent_event(entry.event),
        "last_check": None if entry.last_check is None else _check(entry.last_check),
        "blockers": [_blocker(blocker) for blocker in entry.blockers],
        "expressions": [_expression(read) for read in entry.expressions],
        "comparisons": entry.comparisons,
        "calls": calls,
        "input_mode": None if entry.input_mode is None else _input_mode(entry.input_mode),
    }


def migration_status(detail: MigrationDetail) -> MigrationStatus:
    return {**migration_entry(detail.entry), "old_runs": detail.old_runs}


def agent_event(event: AgentEvent) -> AgentEventResource:
    state = decode_migration(event) if event.kind == "migration" else None
    return {
        "id": event.id,
        "agent": event.agent,
        "kind": event.kind,
        "at": rfc3339(event.at),
        "who": event.who,
        "why": event.why,
        "data": cast("JsonObject", stored_json(event.data) if state is None else _state(state)),
    }


def comparison_resource(record: ComparisonRecord) -> Comparison:
    return {
        "id": record.id,
        "at": rfc3339(record.at),
        "run": record.run_id,
        "step": record.step,
        # Only these values are stored.
        "verdict": cast("ComparisonVerdict", record.verdict),
        "comparison": cast("JsonObject", stored_json(record.record)),
    }


def _state(state: MigrationState) -> MigrationStateResource:
    target, ready, limits = state.target, state.ready, state.limits
    resource: MigrationStateResource = {
        "stage": state.stage,
        "target": None,
        "percent": state.percent,
        "limits": {
            "disagreement": limits.disagreement,
            "comparisons": limits.comparisons,
            "error_rate": limits.error_rate,
            "window": limits.window,
            "calls": limits.calls,
            "slowdown": limits.slowdown,
            "slowest_ms": limits.slowest_ms,
        },
        "ready": None,
        "forced": state.forced,
    }
    if target is not None:
        resource["target"] = {
            "url": target.url,
            "protocol": target.protocol,
            "protocol_config": target.protocol_config,
        }
    if ready is not None:
        resource["ready"] = {"who": ready.who, "at": rfc3339(ready.at), "note": ready.note}
    return resource


def _refusal(refused: RefusedChange) -> MigrationRefusal:
    return {"agent": refused.agent, "message": refused.message, "fix": refused.fix}


def _check(check: CheckOutcome) -> MigrationCheck:
    return {
        "at": rfc3339(check.at),
        "url": check.url,
        "protocol": check.protocol,
        "grade": check.grade,
        "passed": check.passed,
    }


def _blocker(blocker: MigrationBlocker) -> Blocker:
    return {
        "code": blocker.code,
        "message": blocker.message,
        "fix": blocker.fix,
        "fix_command": blocker.fix_command,
        "blocks": blocker.blocks,
    }


def _expression(read: ChangedRead) -> ChangedExpression:
    return {
        "workflow": read.workflow,
        "version": read.version,
        "place": read.place,
        "expression": read.expression,
        "step": read.step,
        "why": read.why,
    }


def _input_mode(proposed: ProposedInputMode) -> ProposedInput:
    return {"mode": proposed.mode, "why": proposed.why, "seen": proposed.seen}


def _calls(ended: EndpointCalls) -> EndpointCallsView:
    return {
        "calls": ended.calls,
        "failed": ended.failed,
        "slowest_ms": ended.slowest_ms,
        "median_ms": ended.median_ms,
    }
