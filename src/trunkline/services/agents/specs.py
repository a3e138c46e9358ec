"""
What a user may say about an agent: read from JSON, checked, and shown again.

Every finding is reported, not only the first, and none repeats anything of an `auth_config`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import get_args
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.agents import AUTO, NO_OPTIONS, Agent, AgentOptions, AuthType
from trunkline.agents.authentication.auth_config import validate_auth_config
from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols import ProtocolAdapterFactory, validate_protocol_config
from trunkline.publish_options import (
    PublishFinding,
    PublishOptions,
    publish_options_to_json,
    read_publish_options,
    template_in,
)
from trunkline.retry_policy import RetryPolicy
from trunkline.services.agents.options import (
    OPTION_FIELDS,
    check_options,
    options_from,
    options_to_json,
    read_option,
)
from trunkline.services.agents.retry_policy import check_retry, retry_from_json, retry_to_json
from trunkline.services.agents.transport_rules import check_transport_rules

# A day: an agent that works longer answers "working" and is asked again.
MAX_TIMEOUT_MS = 86_400_000
MAX_CONCURRENCY = 10_000
MAX_NAME_CHARACTERS = 255
MAX_DESCRIPTION_CHARACTERS = 10_000

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Shown to users and not for them to set; accepted and ignored, so that what was read can be sent back.
_READ_ONLY = frozenset(
    {
        "id",
        "dialect",
        "version",
        "created_at",
        "updated_at",
        "limits",
        "migration",
        "activity",
        "last_check",
    }
)

# A registration in litecone's format is rejected with the command that converts it.
_LITECONE_FIELDS = frozenset({"retry_config", "circuit_breaker_config"})
_LITECONE_API_KEY = "apikey"
_CONVERT = "convert litecone's agents with: trunkline import --from litecone FILE"


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as a user describes it."""

    name: str
    url: str
    description: str | None = None
    protocol: str = AUTO
    protocol_config: JsonObject | None = None
    auth_type: AuthType = "none"
    # Left out of an update, the stored secret stays.
    auth_config: JsonObject | UnsetType | None = UNSET
    timeout_ms: int = 30_000
    retry: RetryPolicy | None = None
    max_concurrency: int = 100
    pool: str | None = None
    publish: PublishOptions | None = None
    # In JSON they are next to the other fields.
    options: AgentOptions = NO_OPTIONS

    def __repr__(self) -> str:
        return f"AgentSpec(name={self.name!r}, url={self.url!r}, auth_type={self.auth_type!r}, …)"


# How each field is read from JSON; `retry` and `auth_type` have words of their own for what is wrong.
_TYPES: dict[str, object] = {
    "name": str,
    "url": str,
    "description": str,
    "protocol": str,
    "protocol_config": JsonObject,
    "auth_config": JsonObject,
    "timeout_ms": int,
    "max_concurrency": int,
    "pool": str,
}
FIELDS = (*(field for field in AgentSpec.__struct_fields__ if field != "options"), *OPTION_FIELDS)


def parse_spec(document: JsonObject) -> AgentSpec:
    """The checked form of a JSON object; null means the default. Raises `Invalid`."""
    findings = [_unknown(key) for key in document if key not in FIELDS and key not in _READ_ONLY]
    values: dict[str, object] = {}
    for key in FIELDS:
        value = document.get(key)
        try:
            if value is not None:
                values[key] = _read(key, value)
            elif key in {"name", "url"}:
                findings.append(Finding(path=key, message="is required"))
            elif key == "auth_config" and key in document:
                values[key] = None
        except ValueError as exc:
            findings.append(_finding_of(key, exc))
    raise_if_any(findings)
    options = options_from(values)
    return msgspec.convert(
        {key: value for key, value in values.items() if key not in OPTION_FIELDS} | {"options": options},
        AgentSpec,
    )


def _read(key: str, value: Json) -> object:
    if key == "retry":
        return retry_from_json(value)
    if key == "auth_type":
        if value not in get_args(AuthType):
            hint = (
                f". '{_LITECONE_API_KEY}' is a type of litecone; {_CONVERT}"
                if value == _LITECONE_API_KEY
                else ""
            )
            raise ValueError(f"must be one of {', '.join(get_args(AuthType))}{hint}")
        return value
    if key in OPTION_FIELDS:
        return read_option(key, value)
    if key == "publish":
        return _read_publish(value)
    return msgspec.convert(value, _TYPES[key])


def _read_publish(value: Json) -> PublishOptions | None:
    options = read_publish_options(value)
    if isinstance(options, PublishFinding):
        place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in options.path)
        raise ValueError(f"{options.message} - at `${place}`")  # noqa: TRY004 - read as msgspec's
    template = None if options is None else template_in(options)
    if template is not None:
        raise ValueError(
            "applies only to workflows, because an agent gets the message itself and its answer is passed on; "
            f"publish a workflow that calls the agent - at `$.{template}`"
        )
    return options


def _finding_of(key: str, exc: ValueError) -> Finding:
    message, _, place = str(exc).partition(" - at `$")
    return Finding(path=key + place.removesuffix("`"), message=message)


def _unknown(key: str) -> Finding:
    if key in _LITECONE_FIELDS:
        return Finding(path=key, message=f"is a field of litecone; {_CONVERT}")
    close = get_close_matches(key, FIELDS, n=1)
    return Finding(path=key, message=f"unknown field; did you mean {close[0]}?" if close else "unknown field")


def spec_document(agent: Agent) -> JsonObject:
    """What `parse_spec` reads, from an agent; without the secret."""
    return {
        "name": agent.name,
        "url": agent.url,
        "description": agent.description,
        "protocol": agent.protocol,
        "protocol_config": agent.protocol_config,
        "auth_type": agent.auth_type,
        "timeout_ms": agent.timeout_ms,
        "retry": None if agent.retry is None else retry_to_json(agent.retry),
        "max_concurrency": agent.max_concurrency,
        "pool": agent.pool,
        "publish": publish_options_to_json(agent.publish),
        **options_to_json(agent.options),
    }


def check_spec(spec: AgentSpec, *, keeps_secret: bool = False) -> None:
    """Raises `Invalid` with all that is wrong. `keeps_secret`: the stored one stays, and was checked."""
    findings: list[Finding] = [
        *_check_text("name", spec.name, MAX_NAME_CHARACTERS),
        *_check_name(spec.name),
        *check_transport_rules(
            spec.url,
            spec.options,
            spec.protocol,
            spec.protocol_config,
            spec.auth_type,
            has_secret=keeps_secret or bool(spec.auth_config),
        ),
        *_check_protocol(spec.protocol, spec.protocol_config),
        *_check_number("timeout_ms", spec.timeout_ms, MAX_TIMEOUT_MS),
        *_check_number("max_concurrency", spec.max_concurrency, MAX_CONCURRENCY),
        *([] if spec.pool is None else _check_text("pool", spec.pool, MAX_NAME_CHARACTERS)),
        *([] if spec.retry is None else check_retry(spec.retry)),
        *_check_description(spec.description),
        *check_options(spec.options),
    ]
    if not keeps_secret:
        findings += validate_auth_config(spec.auth_type, spec.auth_config or None)
    raise_if_any(findings)


def raise_if_any(findings: Sequence[Finding]) -> None:
    """Raises `Invalid` if there is any finding."""
    if findings:
        raise Invalid("; ".join(_sentence(finding) for finding in findings), findings=findings)


def _sentence(finding: Finding) -> str:
    # The text about protocols is part of the public interface, and already names its subject.
    return finding.message if finding.path == "protocol" else f"{finding.path}: {finding.message}"


def _check_text(path: str, text: str, longest: int) -> Iterable[Finding]:
    if not 1 <= len(text) <= longest:
        yield Finding(path=path, message=f"must have 1 to {longest} characters")
    if _CONTROL.search(text):
        yield Finding(path=path, message="must not contain control characters")


def _check_name(name: str) -> Iterable[Finding]:
    # A name is a part of a URL's path, and stands where an id can stand.
    if "/" in name:
        yield Finding(path="name", message="must not contain '/'")
    if name in {".", ".."}:
        yield Finding(path="name", message="must not be '.' or '..'")
    if name != name.strip():
        yield Finding(path="name", message="must not start or end with a space")
    if _is_uuid(name):
        yield Finding(path="name", message="must not look like an id (a UUID)")


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _check_protocol(protocol: str, config: JsonObject | None) -> Iterable[Finding]:
    supported = [AUTO, *ProtocolAdapterFactory.supported_protocols()]
    if protocol not in supported:
        yield Finding(
            path="protocol",
            message=f"Unsupported protocol: {protocol}. Supported protocols: {', '.join(supported)}",
        )
        return
    yield from validate_protocol_config(protocol, config)
    # PostgreSQL cannot keep it in its JSON.
    if config is not None and b"\\u0000" in encode(config):
        yield Finding(path="protocol_config", message="must not contain the character U+0000")


def _check_number(path: str, number: int, most: int) -> Iterable[Finding]:
    if not 1 <= number <= most:
        yield Finding(path=path, message=f"must be from 1 to {most}")


def _check_description(description: str | None) -> Iterable[Finding]:
    if description is None:
        return
    if len(description) > MAX_DESCRIPTION_CHARACTERS:
        yield Finding(
            path="description", message=f"must have at most {MAX_DESCRIPTION_CHARACTERS} characters"
        )
    if "\0" in description:
        yield Finding(path="description", message="must not contain the character U+0000")
