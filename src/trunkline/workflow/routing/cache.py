"""The key `cache`: for how long, and for which other steps, the output of a step is kept."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from trunkline.durations import DURATION_PATTERN
from trunkline.jsontypes import Json, JsonObject
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.routing.keys import is_expression
from trunkline.workflow.secret_references import refuse_secret_references
from trunkline.workflow.validation_report import ValidationReport

CacheScope = Literal["workflow", "agent", "global"]

# The default comes first.
CACHE_SCOPES: tuple[CacheScope, ...] = ("workflow", "agent", "global")
CACHE_KEYS = ("key", "ttl", "scope")
DEFAULT_TTL = "1h"


class Cache(Struct, frozen=True, omit_defaults=True):
    """Reuses the output of an equal step."""

    # Any JSON, with expressions in it: steps are equal if it has the same value.
    key: Json
    # A duration.
    ttl: str = DEFAULT_TTL
    scope: CacheScope = "workflow"


def read_cache(fields: FieldReader, report: ValidationReport, *, is_call: bool) -> Cache | None:
    """`is_call`: the step calls an agent, runs a workflow or has steps."""
    value = fields.mapping("cache")
    if value is None:
        return None
    if not is_call:
        message = (
            "'cache' applies only to a step that calls an agent, runs a workflow or has steps; remove it"
        )
        fields.error("cache", message)
        return None
    path = (*fields.path, "cache")
    cache = FieldReader(value, path, CACHE_KEYS, report)
    key = cache.any("key")
    if key is UNSET:
        fields.error("cache", "'key' is missing; add it, such as key: ${ input.question }")
    elif key is None or key == "":
        cache.error("key", f"'key' must be a value with expressions, {describe_value(key)}")
    else:
        refuse_secret_references(key, (*path, "key"), report)
    cache.duration("ttl", positive=True)
    ttl = value.get("ttl")
    scope: CacheScope = cache.choice("scope", CACHE_SCOPES, "workflow")
    if scope == "agent" and not _names_agent(fields.any("agent")):
        cache.error(
            "scope",
            "'scope: agent' needs a step whose 'agent' is a name; use scope: workflow or scope: global",
        )
    return Cache(None if key is UNSET else key, ttl if isinstance(ttl, str) else DEFAULT_TTL, scope)


def _names_agent(agent: Json | UnsetType) -> bool:
    return isinstance(agent, str) and agent != "" and not is_expression(agent)


def cache_property() -> JsonObject:
    """In the JSON Schema of the language."""
    return {
        "type": "object",
        "description": "Reuses the output of an equal step that has completed, and waits for one that is running. "
        "Steps are equal if 'key' has the same value.",
        "examples": [{"key": "${ input.question }", "ttl": "1h"}],
        "required": ["key"],
        "additionalProperties": False,
        "properties": {
            "key": {
                "description": "What the output depends on. Strings can contain ${ … }.",
                "not": {"enum": [None, ""]},
            },
            "ttl": {
                "type": "string",
                "pattern": DURATION_PATTERN,
                "default": DEFAULT_TTL,
                "description": "How long an output is reused.",
            },
            "scope": {
                "enum": [*CACHE_SCOPES],
                "default": CACHE_SCOPES[0],
                "description": "workflow: steps of the same workflow that call the same agent or workflow share "
                "outputs. agent: all steps that call the same agent. global: all steps with the same key.",
            },
        },
    }
