"""Agents, their health and their cards, as the REST API returns them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, NotRequired, TypedDict, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.agents import Agent, AuthType, Dialect, Resend, TransportName
from trunkline.agents.migration import MigrationState
from trunkline.api.resources.agents.activity import AgentActivity, agent_activity
from trunkline.api.resources.agents.limits import (
    AgentLimits,
    BreakerPolicyResource,
    RateLimitResource,
    RetryPolicyResource,
    agent_limits,
)
from trunkline.api.resources.agents.migration import MigrationStateResource, migration_state
from trunkline.api.resources.common import JsonMapping, JsonValue, NextCursor, Timestamp
from trunkline.clock import rfc3339
from trunkline.publish_options import publish_options_to_json
from trunkline.services.agents.activity import AgentOverview
from trunkline.services.agents.inspection import CardView
from trunkline.services.agents.options import breaker_to_json
from trunkline.services.agents.retry_policy import retry_to_json
from trunkline.stores.base import AgentLoad
from trunkline.stores.port.agents.agent_events import Grade

if TYPE_CHECKING:
    from trunkline.api.services import HealthReport

NAME_PATTERN = r"^[^\s/\x00-\x1f\x7f-\x9f]([^/\x00-\x1f\x7f-\x9f]*[^\s/\x00-\x1f\x7f-\x9f])?$"
NAME_RULE = (
    "Unique among agents. Must not contain slashes or control characters, or start or end with a space."
)
POOL_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]+$"
URL_PATTERN = r"^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s]"
AGENT_URL_PATTERN = r"^([Hh][Tt][Tt][Pp][Ss]?://[^/?#\s]|arn:aws[a-z-]*:bedrock-agentcore:|stdio:)"
AGENT_URL_RULE = (
    "Depends on `transport`: an http or https URL, the ARN of an AgentCore runtime (optionally "
    "with `?qualifier=`), or `stdio:` and the name of a program in the bridge's settings."
)
URL_EXAMPLE = "http://localhost:8080/agent"
COST_RULE = "What a call costs, in a unit of your choice. Steps with `select: cheapest` compare it."
CARD_ORIGINS_RULE = "Origins that the agent's card may name in addition to the agent's own origin."
PUBLISH_RULE = (
    "Publishes the agent as an A2A agent: `true`, or an object with the same options as `publish` of a workflow, "
    "except `input` and `artifacts`. Null or `false` if it is not published."
)
CARD_ORIGIN_EXAMPLE = "https://agents.example.org"
# The registry also accepts protocols that were added; the models of a registration list the built-in ones.
_PROTOCOL = Meta(extra_json_schema={"$ref": "#/components/schemas/AgentProtocol"})


class AgentPatch(msgspec.Struct, forbid_unknown_fields=True):
    """A JSON merge patch of an agent. Omitted fields stay unchanged. Null restores the default."""

    name: (
        Annotated[str, Meta(min_length=1, max_length=255, pattern=NAME_PATTERN, description=NAME_RULE)]
        | UnsetType
    ) = UNSET
    url: (
        Annotated[
            str,
            Meta(
                max_length=2048,
                pattern=AGENT_URL_PATTERN,
                description=AGENT_URL_RULE,
                examples=[URL_EXAMPLE],
            ),
        ]
        | UnsetType
    ) = UNSET
    description: Annotated[str, Meta(max_length=10_000)] | None = None
    protocol: Annotated[str, _PROTOCOL] | None = None
    protocol_config: Annotated[JsonMapping, Meta(description="Merged into the current value.")] | None = None
    auth_type: AuthType | None = None
    auth_config: JsonMapping | None = None
    timeout_ms: Annotated[int, Meta(ge=1, le=86_400_000)] | None = None
    retry: JsonMapping | None = None
    max_concurrency: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    pool: Annotated[str, Meta(min_length=1, max_length=255, pattern=POOL_PATTERN)] | None = None
    transport: TransportName | None = None
    resend: Resend | None = None
    endpoint_override: (
        Annotated[str, Meta(max_length=2048, pattern=URL_PATTERN, examples=[URL_EXAMPLE])] | None
    ) = None
    allow_card_origin: Annotated[
        str | list[str] | None, Meta(description=CARD_ORIGINS_RULE, examples=[CARD_ORIGIN_EXAMPLE])
    ] = None
    rate: JsonMapping | None = None
    breaker: JsonMapping | bool | None = None
    repeatable: bool | None = None
    cost: Annotated[float, Meta(ge=0, le=1_000_000_000, description=COST_RULE)] | None = None
    tags: (
        Annotated[list[str], Meta(max_length=100, description="Words by which agents are found.")] | None
    ) = None
    skills: (
        Annotated[
            list[str],
            Meta(max_length=100, description="What the agent can do. Null: the skills in its card."),
        ]
        | None
    ) = None
    publish: Annotated[JsonMapping | bool | None, Meta(description=PUBLISH_RULE)] = None


class ProbeResource(TypedDict):
    """One request that was made to determine an agent's dialect, and its result."""

    at: Timestamp
    tried: str
    answered: str


class DialectResource(TypedDict):
    """The dialect that was detected, with the evidence for it."""

    protocol: str
    url: Annotated[str, Meta(description="The endpoint that speaks this dialect.")]
    evidence: str
    decided_at: Timestamp
    card_url: Annotated[
        str | None, Meta(description="URL of the card that determined the dialect. Null if there is none.")
    ]
    card_etag: str | None
    card_digest: str | None
    streams: Annotated[bool, Meta(description="Whether the card offers streaming.")]
    pushes: Annotated[bool, Meta(description="Whether the card offers push notifications.")]
    tenant: str | None
    tried: list[ProbeResource]


class LastCheckResource(TypedDict):
    """Summary of an agent's last check."""

    id: str
    at: Timestamp
    grade: str
    passed: bool


class AgentMetadataResource(TypedDict):
    """A registered agent. Credentials are never returned."""

    id: str
    name: str
    url: str
    description: str | None
    protocol: str
    protocol_config: JsonMapping | None
    auth_type: AuthType
    timeout_ms: int
    retry: RetryPolicyResource | None
    max_concurrency: int
    pool: str | None
    transport: TransportName
    resend: Resend
    endpoint_override: str | None
    allow_card_origin: Sequence[str]
    rate: RateLimitResource | None
    breaker: BreakerPolicyResource | None
    repeatable: bool
    cost: Annotated[float | None, Meta(description=COST_RULE)]
    tags: Annotated[Sequence[str], Meta(description="Words by which agents are found.")]
    skills: Annotated[
        Sequence[str],
        Meta(description="What the agent can do, as registered. If nothing is registered, as its card says."),
    ]
    publish: Annotated[JsonValue, Meta(description=PUBLISH_RULE)]
    dialect: Annotated[
        DialectResource | None, Meta(description="The detected dialect. Null if it is not known yet.")
    ]
    created_at: Timestamp
    updated_at: Timestamp
    limits: NotRequired[Annotated[AgentLimits | None, Meta(description="In lists, only with `activity`.")]]
    activity: NotRequired[
        Annotated[AgentActivity | None, Meta(description="Only in lists, with `activity`.")]
    ]
    last_check: NotRequired[
        Annotated[
            LastCheckResource | None,
            Meta(description="Only in lists, with `activity`. Null if the agent was never checked."),
        ]
    ]
    migration: NotRequired[
        Annotated[
            MigrationStateResource | None,
            Meta(description="State of the agent's migration. Null if there is none. Not in lists."),
        ]
    ]


class AgentPage(TypedDict):
    items: list[AgentMetadataResource]
    next_cursor: NextCursor


class AgentHealth(TypedDict):
    status: Annotated[
        Literal["healthy", "unhealthy", "unknown"],
        Meta(description="`unknown`: the agent cannot be probed without sending it work."),
    ]
    checked_at: Timestamp
    detail: str
    protocol: str | None
    http_status: int | None
    duration_ms: float


class AgentCardView(TypedDict):
    """The current card of an agent."""

    asked_at: Timestamp
    url: Annotated[str | None, Meta(description="The last URL that was tried.")]
    detail: Annotated[str, Meta(description="What the agent answered, or why it was not called.")]
    card: Annotated[JsonValue, Meta(description="The complete card, redacted. Null if there is none.")]
    changed: Annotated[
        bool | None,
        Meta(
            description="Whether the card differs from the one that determined the dialect. Null if there is "
            "nothing to compare."
        ),
    ]


def listed_agent(agent: Agent) -> AgentMetadataResource:
    """An item of a list, without the data that changes with every call."""
    options = agent.options
    rate = options.rate
    return {
        "id": agent.id,
        "name": agent.name,
        "url": agent.url,
        "description": agent.description,
        "protocol": agent.protocol,
        "protocol_config": agent.protocol_config,
        "auth_type": agent.auth_type,
        "timeout_ms": agent.timeout_ms,
        "retry": None if agent.retry is None else cast("RetryPolicyResource", retry_to_json(agent.retry)),
        "max_concurrency": agent.max_concurrency,
        "pool": agent.pool,
        "transport": options.transport,
        "resend": options.resend,
        "endpoint_override": options.endpoint_override,
        "allow_card_origin": options.allow_card_origin,
        "rate": None if rate is None else {"per_second": rate.per_second, "burst": rate.burst},
        "breaker": cast("BreakerPolicyResource | None", breaker_to_json(options.breaker)),
        "repeatable": options.repeatable,
        "cost": options.cost,
        "tags": options.tags,
        "skills": agent.skills,
        "publish": publish_options_to_json(agent.publish),
        "dialect": None if agent.dialect is None else _dialect(agent.dialect),
        "created_at": rfc3339(agent.created_at),
        "updated_at": rfc3339(agent.updated_at),
    }


def agent_resource(agent: Agent, load: AgentLoad, migration: MigrationState | None) -> AgentMetadataResource:
    """A single agent, with its load, the state of its limits and its migration."""
    return {
        **listed_agent(agent),
        "limits": agent_limits(agent.options, load),
        "migration": migration_state(migration),
    }


def agent_overview(overview: AgentOverview) -> AgentMetadataResource:
    """An item of a list, with its load, activity and last check."""
    return {
        **listed_agent(overview.agent),
        "limits": agent_limits(overview.agent.options, overview.load),
        "activity": agent_activity(overview.activity),
        "last_check": None if overview.grade is None else _last_check(overview.grade),
    }


def agent_health(report: HealthReport) -> AgentHealth:
    return {
        "status": report.status,
        "checked_at": rfc3339(report.checked_at),
        "detail": report.detail,
        "protocol": report.protocol,
        "http_status": report.http_status,
        "duration_ms": report.duration_ms,
    }


def agent_card(agent: Agent, view: CardView) -> AgentCardView:
    known = None if agent.dialect is None else agent.dialect.card_digest
    return {
        "asked_at": rfc3339(view.asked_at),
        "url": view.url,
        "detail": view.detail,
        "card": view.card,
        # Unknown if no card was read before.
        "changed": None if view.digest is None or known is None else view.digest != known,
    }


def _dialect(dialect: Dialect) -> DialectResource:
    return {
        "protocol": dialect.protocol,
        "url": dialect.url,
        "evidence": dialect.evidence,
        "decided_at": rfc3339(dialect.decided_at),
        "card_url": dialect.card_url,
        "card_etag": dialect.card_etag,
        "card_digest": dialect.card_digest,
        "streams": dialect.streams,
        "pushes": dialect.pushes,
        "tenant": dialect.tenant,
        "tried": [
            {"at": rfc3339(probe.at), "tried": probe.tried, "answered": probe.answered}
            for probe in dialect.tried
        ],
    }


def _last_check(grade: Grade) -> LastCheckResource:
    return {"id": grade.check_id, "at": rfc3339(grade.at), "grade": grade.grade, "passed": grade.passed}
