"""
The public pydantic models of an agent registration, for OpenAPI and for Python code that prepares one.

The registry validates what is registered. It also knows dialects that were added.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema, model_validator
from pydantic.fields import FieldInfo

from trunkline.agents import AuthType, Resend, TransportName
from trunkline.agents.authentication.credentials import MAX_TOKEN_SECONDS
from trunkline.api.resources.agents.limits import DURATION_PATTERN
from trunkline.api.resources.agents.registry import (
    AGENT_URL_PATTERN,
    AGENT_URL_RULE,
    CARD_ORIGIN_EXAMPLE,
    CARD_ORIGINS_RULE,
    COST_RULE,
    NAME_PATTERN,
    NAME_RULE,
    POOL_PATTERN,
    PUBLISH_RULE,
    URL_EXAMPLE,
    URL_PATTERN,
)

Name = Annotated[str, Field(min_length=1, max_length=255, description=NAME_RULE, pattern=NAME_PATTERN)]
Listed = Annotated[str, Field(min_length=1, max_length=100)]
Pool = Annotated[str, Field(min_length=1, max_length=255, pattern=POOL_PATTERN)]
Url = Annotated[str, Field(max_length=2048, pattern=URL_PATTERN, examples=[URL_EXAMPLE])]
AgentUrl = Annotated[
    str,
    Field(max_length=2048, pattern=AGENT_URL_PATTERN, description=AGENT_URL_RULE, examples=[URL_EXAMPLE]),
]
Time = Annotated[datetime, Field(description="RFC 3339, UTC.", examples=["2026-03-01T12:00:00.123456Z"])]
Duration = Annotated[
    str,
    Field(
        description="A number with a unit: `100ms`, `25s`, `5m`, `1h`, `2d`.",
        pattern=DURATION_PATTERN,
        examples=["25s"],
    ),
]
JsonObject = dict[str, JsonValue]
ProtocolConfig = Annotated[
    JsonObject,
    Field(description="Options of the protocol. A custom dialect has its own options."),
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
            "Credentials for the agent. Write-only. The fields depend on `auth_type`: `{token}` "
            "for bearer, `{name, value, in}` for api_key, `{username, password}` for basic, "
            "`{name: value, …}` for headers, `{token_url, client_id, client_secret, scope, "
            "audience, client_auth, token_tls}` for oauth2, `{key, issuer, audience, "
            "lifetime_seconds, key_id}` for signed, `{certificate, key, authority}` for mtls. "
            "Keys and certificates are PEM. All types except mtls also accept `tls: {authority, "
            "certificate, key}`."
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
CardOrigins = Annotated[str | list[str], Field(description=CARD_ORIGINS_RULE, examples=[CARD_ORIGIN_EXAMPLE])]
# An HTTP status or class, a JSON-RPC code, or an error code.
RetryCondition = (
    Annotated[int, Field(ge=100, le=599)]
    | Annotated[int, Field(le=-1)]
    | Annotated[str, Field(pattern="^(any|no_answer|[1-5]xx|[a-z]+(_[a-z]+)*)$")]
)


def _optional(description: str | None = None) -> FieldInfo:
    """A field that may be omitted, but must not be null. The schema does not show its default."""
    return Field(description=description, json_schema_extra=_without_default)


def _without_default(schema: JsonObject) -> None:
    schema.pop("default", None)


class Shape(BaseModel):
    """A JSON object without additional fields."""

    model_config = ConfigDict(extra="forbid")


class RetryPolicy(Shape):
    """When and how often a failed call is retried."""

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
    """The protocol of an agent. `auto` detects it."""

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
    """Sends waiting tasks of the same agent in one request."""

    max: int = Field(ge=2, le=100)
    wait_ms: int = Field(default=10, ge=0, le=1000)


class JsonRpcProtocolConfig(Shape):
    """`protocol_config` of an agent that speaks JSON-RPC 2.0. Each dialect supports some of these keys."""

    method: str = Field(default="message/send", min_length=1, description="JSON-RPC method name")
    version: Literal["2.0"] = Field(default="2.0", description="JSON-RPC version")
    input_mode: Literal["text", "json", "data"] = Field(
        default="text", description="How the input is sent: its text, a JSON text, or a data part."
    )
    params: Literal["message", "input"] = Field(
        default="message",
        description="What `params` contains: a message with the input, or the input object itself.",
    )
    output_mode: Literal["full", "data"] = Field(
        default="full",
        description="The step's output: all parts of the response, or only the agent's object.",
    )
    batch: Batch | None = Field(
        default=None, description="JSON-RPC batches. Omit it to send each request on its own."
    )
    profile: Annotated[
        str | JsonObject,
        _optional("For a zone: the profile of its params, as a name or a JSON Schema."),
    ] = ""
    poll_method: str = Field(
        default="get_task_result",
        min_length=1,
        description="For a zone: the method that returns the result of accepted work.",
    )
    tenant: Annotated[str, _optional("The A2A 1.0 tenant. Defaults to the one in the agent's card.")] = ""


class RateLimit(Shape):
    """Maximum calls per second over all bridges, and the burst size."""

    per_second: float = Field(gt=0, le=100_000)
    burst: int = Field(default=1, ge=1, le=100_000)


class BreakerPolicy(Shape):
    """When the circuit breaker stops calls to an agent, and when it lets them through again."""

    failures: int = Field(
        default=5, ge=1, le=10_000, description="Consecutive failures that open the breaker."
    )
    rate: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Share of failures among the last `window` calls that opens the breaker.",
    )
    window: int = Field(default=20, ge=1, le=10_000)
    open_ms: int = Field(
        default=30_000, ge=1, le=86_400_000, description="How long the breaker stays open, in milliseconds."
    )
    probes: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="Probe calls allowed at a time while the breaker is half-open.",
    )
    jsonrpc_errors: bool = Field(default=False, description="Whether a JSON-RPC error counts as a failure.")


class AgentCreate(Shape):
    """The registration of an agent."""

    name: Name
    url: AgentUrl
    description: str | None = Field(default=None, max_length=10_000)
    protocol: AgentProtocol = AgentProtocol.AUTO
    protocol_config: ProtocolConfig | None = None
    auth_type: AuthType = "none"
    auth_config: AuthConfig | None = None
    timeout_ms: int = Field(
        default=30_000, ge=1, le=86_400_000, description="Timeout of one attempt, in milliseconds."
    )
    retry: RetryPolicy | None = Field(
        default=None, description="Retry policy. A step's own policy overrides it."
    )
    max_concurrency: int = Field(
        default=100, ge=1, le=10_000, description="Maximum number of calls at the same time."
    )
    pool: Pool | None = None
    transport: TransportName = Field(
        default="https",
        description="How the agent is reached: over HTTP, as an AgentCore runtime, or as a local program.",
    )
    resend: Resend = Field(
        default="ask_first", description="What to do when it is unknown whether the agent received a message."
    )
    endpoint_override: Url | None = Field(
        default=None, description="URL to send to, instead of the one in the agent's card."
    )
    allow_card_origin: CardOrigins | None = None
    rate: RateLimit | None = None
    breaker: BreakerPolicy | bool | None = Field(
        default=None, description="Circuit breaker. `true` uses the defaults."
    )
    repeatable: bool = Field(
        default=False,
        description="Whether it is safe to call the agent twice with the same work. Required for shadowing.",
    )
    cost: float | None = Field(default=None, ge=0, le=1_000_000_000, description=COST_RULE)
    tags: list[Listed] | None = Field(
        default=None, max_length=100, description="Words by which agents are found."
    )
    skills: list[Listed] | None = Field(
        default=None, max_length=100, description="What the agent can do. Default: the skills in its card."
    )
    publish: JsonObject | bool | None = Field(default=None, description=PUBLISH_RULE)

    @model_validator(mode="after")
    def _check_protocol_config(self) -> Self:
        if self.protocol is AgentProtocol.JSONRPC_2_0 and self.protocol_config:
            JsonRpcProtocolConfig.model_validate(self.protocol_config)
        return self


class AgentMetadata(Shape):
    """A registered agent. Credentials are never returned."""

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
    cost: float | None
    tags: list[str]
    skills: list[str]
    publish: JsonObject | bool | None
    # What the server adds to the registration.
    dialect: JsonObject | None
    created_at: Time
    updated_at: Time
    limits: JsonObject | None = None
    activity: JsonObject | None = None
    last_check: JsonObject | None = None
    migration: JsonObject | None = None
