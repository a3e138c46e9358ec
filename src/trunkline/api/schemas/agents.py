"""
Agents as the API takes and shows them, under the seeds' names.

The registry checks what is registered (it knows dialects that were added, too); these models say the same to
readers of OpenAPI and to Python code that wants to prepare a registration.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, WithJsonSchema, model_validator

from trunkline.agents import AuthType, Resend, TransportName
from trunkline.agents.authentication.credentials import MAX_TOKEN_SECONDS
from trunkline.api.schemas.activity import AgentActivity, LastCheck
from trunkline.api.schemas.common import Duration, JsonObject, NextCursor, Shape, Time, optional

Name = Annotated[
    str,
    Field(
        min_length=1,
        max_length=255,
        description="Unique among the agents; no slash, no control character, no space at either end.",
        pattern=r"^[^\s/\x00-\x1f\x7f-\x9f]([^/\x00-\x1f\x7f-\x9f]*[^\s/\x00-\x1f\x7f-\x9f])?$",
    ),
]
Pool = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
Url = Annotated[
    str,
    Field(
        max_length=2048,
        pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s]",
        examples=["http://localhost:8080/agent"],
    ),
]
AgentUrl = Annotated[
    str,
    Field(
        max_length=2048,
        pattern=r"^([Hh][Tt][Tt][Pp][Ss]?://[^/?#\s]|arn:aws[a-z-]*:bedrock-agentcore:|stdio:)",
        description=(
            "By `transport`: an http or https URL; the ARN of an AgentCore runtime, with `?qualifier=` if needed; "
            "or `stdio:` and the name of a program in the bridge's settings."
        ),
        examples=["http://localhost:8080/agent"],
    ),
]
ProtocolConfig = Annotated[
    JsonObject,
    Field(description="Settings of the dialect; a dialect that was added has its own."),
    WithJsonSchema({"$ref": "#/components/schemas/JsonRpcProtocolConfig"}),
]
_TLS: JsonObject = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("authority", "certificate", "key")},
    "additionalProperties": False,
}
AuthConfig = Annotated[
    JsonObject,
    Field(
        description=(
            "The secret; written, never shown: `{token}` for bearer, `{name, value, in}` for api_key, "
            "`{username, password}` for basic, `{name: value, …}` for headers, `{token_url, client_id, "
            "client_secret, scope, audience, client_auth, token_tls}` for oauth2, `{key, issuer, audience, "
            "lifetime_seconds, key_id}` for signed, `{certificate, key, authority}` for mtls, keys as PEM; beside "
            "each of them but the last, `tls: {authority, certificate, key}`."
        )
    ),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                **dict.fromkeys(("tls", "token_tls"), _TLS),
                "lifetime_seconds": {"type": "integer", "minimum": 1, "maximum": MAX_TOKEN_SECONDS},
            },
            "additionalProperties": {"type": "string"},
        }
    ),
]
CardOrigins = Annotated[
    str | list[str],
    Field(
        description="Origins that the agent's card may name beside the agent's own.",
        examples=["https://agents.example.org"],
    ),
]
# A status or class, a code of JSON-RPC, a code of ours.
RetryCondition = (
    Annotated[int, Field(ge=100, le=599)]
    | Annotated[int, Field(le=-1)]
    | Annotated[str, Field(pattern="^(any|no_answer|[1-5]xx|[a-z]+(_[a-z]+)*)$")]
)


class RetryPolicy(Shape):
    """When and how often a failed call is made again."""

    max_attempts: int = Field(default=3, ge=1, le=1000)
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    first_delay: Duration = "1s"
    max_delay: Duration = "1m"
    jitter: bool = True
    on: list[RetryCondition] = Field(
        default=["no_answer", 408, 425, 429, "5xx"],
        description="`no_answer`, an HTTP status or class (`5xx`), a JSON-RPC code, an error code, or `any`.",
    )


class AgentProtocol(StrEnum):
    """What an agent speaks; `auto`: find out."""

    AUTO = "auto"
    SIMPLE_A2A = "simple-a2a"
    JSONRPC_2_0 = "jsonrpc-2.0"
    JSONRPC_CALL = "jsonrpc-call"
    A2A_0_1 = "a2a-0.1"
    A2A_0_1_PATHS = "a2a-0.1-paths"
    A2A_0_2 = "a2a-0.2"
    A2A_0_3 = "a2a-0.3"
    A2A_1_0 = "a2a-1.0"
    A2A_1_0_HTTP = "a2a-1.0-http"


class Batch(Shape):
    """Tasks that wait for the same agent travel in one request."""

    max: int = Field(ge=2, le=100)
    wait_ms: int = Field(default=10, ge=0, le=1000)


class JsonRpcProtocolConfig(Shape):
    """`protocol_config` of an agent that speaks JSON-RPC 2.0; of these keys each dialect has some."""

    method: str = Field(default="message/send", min_length=1, description="JSON-RPC method name")
    version: Literal["2.0"] = Field(default="2.0", description="JSON-RPC version")
    input_mode: Literal["text", "json", "data"] = Field(
        default="text", description="The input as its text, as a text that is JSON, or as a data part."
    )
    params: Literal["message", "input"] = Field(
        default="message", description="A message around the input, or the input object itself."
    )
    output_mode: Literal["full", "data"] = Field(
        default="full", description="The whole output, or only the object that the agent gave."
    )
    batch: Batch | None = Field(default=None, description="Requests in one, for dialects in JSON-RPC.")
    profile: Annotated[
        str | JsonObject,
        optional("The agent is a zone: the profile of its params, by name or as a JSON Schema."),
    ] = ""
    poll_method: str = Field(
        default="get_task_result", min_length=1, description="Asks for the result of work that was accepted."
    )
    tenant: Annotated[str, optional("Part of every request of A2A 1.0; the card's own unless given.")] = ""


class RateLimit(Shape):
    """At most so many calls a second over all bridges; so many at once after a quiet time."""

    per_second: float = Field(gt=0, le=100_000)
    burst: int = Field(default=1, ge=1, le=100_000)


class BreakerPolicy(Shape):
    """When calls of an agent stop for a while, and how they begin again."""

    failures: int = Field(default=5, ge=1, le=10_000, description="So many in a row open it.")
    rate: float = Field(default=0.5, gt=0, le=1, description="This share of the last `window` calls too.")
    window: int = Field(default=20, ge=1, le=10_000)
    open_ms: int = Field(default=30_000, ge=1, le=86_400_000, description="How long it stays open.")
    probes: int = Field(default=1, ge=1, le=10_000, description="Calls let through to see whether it works.")
    jsonrpc_errors: bool = Field(default=False, description="Whether a JSON-RPC error counts as a failure.")


class AgentCreate(Shape):
    """An agent as it is registered."""

    name: Name
    url: AgentUrl
    description: str | None = Field(default=None, max_length=10_000)
    protocol: AgentProtocol = AgentProtocol.AUTO
    protocol_config: ProtocolConfig | None = None
    auth_type: AuthType = "none"
    auth_config: AuthConfig | None = None
    timeout_ms: int = Field(default=30_000, ge=1, le=86_400_000, description="Of one attempt.")
    retry: RetryPolicy | None = Field(default=None, description="A step's own policy overrides it.")
    max_concurrency: int = Field(default=100, ge=1, le=10_000, description="Calls at a time.")
    pool: Pool | None = None
    transport: TransportName = Field(default="https", description="What carries its calls.")
    resend: Resend = Field(
        default="ask_first", description="When nobody knows whether the agent has taken a message."
    )
    endpoint_override: Url | None = Field(
        default=None, description="Where to send instead of where the agent's card says."
    )
    allow_card_origin: CardOrigins | None = None
    rate: RateLimit | None = None
    breaker: BreakerPolicy | bool | None = Field(default=None, description="true: with its defaults.")
    repeatable: bool = Field(
        default=False, description="The same work may be given to it twice, as while it is shadowed."
    )

    @model_validator(mode="after")
    def _check_protocol_config(self) -> Self:
        if self.protocol is AgentProtocol.JSONRPC_2_0 and self.protocol_config:
            JsonRpcProtocolConfig.model_validate(self.protocol_config)
        return self


class AgentPatch(Shape):
    """A JSON merge patch of an agent: what is left out stays, null goes back to the default."""

    name: Annotated[Name, optional()] = ""
    url: Annotated[AgentUrl, optional()] = ""
    description: str | None = Field(default=None, max_length=10_000)
    protocol: AgentProtocol | None = None
    protocol_config: Annotated[JsonObject, Field(description="Merged with the present one.")] | None = None
    auth_type: AuthType | None = None
    auth_config: JsonObject | None = None
    timeout_ms: int | None = Field(default=None, ge=1, le=86_400_000)
    retry: JsonObject | None = None
    max_concurrency: int | None = Field(default=None, ge=1, le=10_000)
    pool: Pool | None = None
    transport: TransportName | None = None
    resend: Resend | None = None
    endpoint_override: Url | None = None
    allow_card_origin: CardOrigins | None = None
    rate: JsonObject | None = None
    breaker: JsonObject | bool | None = None
    repeatable: bool | None = None


class Probe(Shape):
    """One thing that was tried in order to find out what an agent speaks, and what came of it."""

    at: Time
    tried: str
    answered: str


class Dialect(Shape):
    """What an agent speaks in fact, and how we know."""

    protocol: str
    url: str = Field(description="Where it is spoken.")
    evidence: str
    decided_at: Time
    card_url: str | None = Field(description="The card that said so; null: there is none.")
    card_etag: str | None
    card_digest: str | None
    streams: bool = Field(description="Whether the card offers streams.")
    pushes: bool = Field(description="Whether the card offers push notifications.")
    tenant: str | None
    tried: list[Probe]


class BreakerState(Shape):
    """How an agent's breaker stands."""

    state: Literal["closed", "open", "half_open"]
    failures: int = Field(description="In a row.")
    opened_at: Time | None
    retry_at: Time | None = Field(description="When calls are let through again, to see whether it works.")
    reason: str | None = Field(description="Why it is open.")


class RateState(Shape):
    per_second: float
    burst: int
    tokens: int = Field(description="Calls that may begin at once.")


class AgentLimits(Shape):
    """What an agent has to do, over all bridges, and how its limits stand."""

    in_flight: int
    queued: int = Field(description="Tasks that wait for a slot, for a token or for the breaker.")
    breaker: BreakerState | None = Field(description="null: the agent has none.")
    rate: RateState | None = Field(description="null: the agent has none.")


class AgentMetadata(Shape):
    """An agent as it is shown."""

    id: str
    name: str
    url: str
    description: str | None
    protocol: str
    protocol_config: JsonObject | None
    auth_type: AuthType
    timeout_ms: int
    retry: RetryPolicy | None
    max_concurrency: int
    pool: str | None
    transport: TransportName
    resend: Resend
    endpoint_override: str | None
    allow_card_origin: list[str]
    rate: RateLimit | None
    breaker: BreakerPolicy | None
    repeatable: bool
    dialect: Dialect | None = Field(description="What is spoken in fact; null: not known yet.")
    created_at: Time
    updated_at: Time
    limits: Annotated[
        AgentLimits | None, Field(description="In lists only where `activity` is asked for.")
    ] = None
    activity: Annotated[AgentActivity | None, Field(description="Only in lists, where it is asked for.")] = (
        None
    )
    last_check: Annotated[LastCheck | None, Field(description="As `activity`; null: never checked.")] = None
    migration: Annotated[
        JsonObject | None,
        Field(description="Where the agent's migration stands; null: it does not move. Not in lists."),
        WithJsonSchema(
            {"anyOf": [{"$ref": "#/components/schemas/MigrationState"}, {"type": "null"}], "default": None}
        ),
    ] = None


class AgentPage(Shape):
    items: list[AgentMetadata]
    next_cursor: NextCursor


class AgentHealth(Shape):
    status: Literal["healthy", "unhealthy", "unknown"] = Field(
        description="`unknown`: the agent cannot be asked without giving it work."
    )
    checked_at: Time
    detail: str
    protocol: str | None
    http_status: int | None
    duration_ms: float
