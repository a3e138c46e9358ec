"""
The public pydantic models for code that prepares a registration of an agent.

The registry checks what is registered (it knows dialects that were added, too); these models say the same to
readers of OpenAPI and to Python code that wants to prepare a registration.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema, model_validator
from pydantic.fields import FieldInfo

from trunkline.agents import AuthType, Resend, TransportName
from trunkline.agents.authentication.credentials import MAX_TOKEN_SECONDS
from trunkline.api.resources.agent_limits import DURATION_PATTERN
from trunkline.api.resources.agents import (
    AGENT_URL_PATTERN,
    AGENT_URL_RULE,
    CARD_ORIGIN_EXAMPLE,
    CARD_ORIGINS_RULE,
    NAME_PATTERN,
    NAME_RULE,
    POOL_PATTERN,
    URL_EXAMPLE,
    URL_PATTERN,
)

Name = Annotated[str, Field(min_length=1, max_length=255, description=NAME_RULE, pattern=NAME_PATTERN)]
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
        description="A number and a unit: `100ms`, `25s`, `5m`, `1h`, `2d`.",
        pattern=DURATION_PATTERN,
        examples=["25s"],
    ),
]
JsonObject = dict[str, JsonValue]
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
CardOrigins = Annotated[str | list[str], Field(description=CARD_ORIGINS_RULE, examples=[CARD_ORIGIN_EXAMPLE])]
# A status or class, a code of JSON-RPC, a code of ours.
RetryCondition = (
    Annotated[int, Field(ge=100, le=599)]
    | Annotated[int, Field(le=-1)]
    | Annotated[str, Field(pattern="^(any|no_answer|[1-5]xx|[a-z]+(_[a-z]+)*)$")]
)


def _optional(description: str | None = None) -> FieldInfo:
    """A field that may be left out, but not be null; its default is nobody's business."""
    return Field(description=description, json_schema_extra=_without_default)


def _without_default(schema: JsonObject) -> None:
    schema.pop("default", None)


class Shape(BaseModel):
    """A JSON object with these fields and no others."""

    model_config = ConfigDict(extra="forbid")


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
        _optional("The agent is a zone: the profile of its params, by name or as a JSON Schema."),
    ] = ""
    poll_method: str = Field(
        default="get_task_result", min_length=1, description="Asks for the result of work that was accepted."
    )
    tenant: Annotated[str, _optional("Part of every request of A2A 1.0; the card's own unless given.")] = ""


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
    # What the server knows beyond the registration, as it answers it.
    dialect: JsonObject | None
    created_at: Time
    updated_at: Time
    limits: JsonObject | None = None
    activity: JsonObject | None = None
    last_check: JsonObject | None = None
    migration: JsonObject | None = None
