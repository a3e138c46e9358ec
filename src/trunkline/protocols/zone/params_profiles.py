"""
Profiles: what the params of a zone's method must look like, each a JSON Schema.

    "slack"   {"channel", "text", "bot_token", "correlation_id"?, "thread_ts"?, "attachments"?, "team_id"?, "user_id"?}
    "any"     any object

Others are registered under a name (an operator's folder of NAME.json files, read at the start), or stand as a schema
where a name could stand. A finding names the field and never quotes its value: that may be a secret. No schema makes
us fetch anything, and none is evaluated without bounds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib.resources import files

import msgspec
from jsonschema_rs import ValidationErrorKind

from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json, JsonObject
from trunkline.workflow.bounded_schema import BoundedSchema, SchemaError, SchemaTooComplex, ValueTooComplex
from trunkline.workflow.document.locations import path_text

BUILT_IN = ("slack", "any")

NAME_RULE = "letters, digits, '.', '_' and '-', beginning with a letter or a digit, at most 64 in all"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MOST_FINDINGS = 20
_LONGEST_MESSAGE = 300
# Names may come from an untrusted request.
_LONGEST_PATH = 150


class InvalidProfile(Invalid):
    """The profile is not known, or its schema is not valid."""

    fix = "Use an existing profile, or correct the JSON Schema."


class ParamsProfile:
    """A schema that is ready to check params with."""

    def __init__(self, name: str, schema: JsonObject) -> None:
        """Raises `InvalidProfile`."""
        self.name = name
        self.schema = schema
        try:
            self._checked = BoundedSchema(schema, mask="the value")
        except SchemaTooComplex as exc:
            raise InvalidProfile(f"it is too complex: {exc}") from exc
        except ValueError as exc:
            raise InvalidProfile(f"it is not valid JSON Schema: {_reason(exc)}") from exc
        properties = schema.get("properties")
        self._fields = frozenset(properties if isinstance(properties, dict) else ())

    def knows(self, field: str) -> bool:
        """Whether the schema speaks of this field."""
        return field in self._fields

    def check(self, params: Json) -> list[Finding]:
        """What is wrong with params; empty: they can be sent, or taken."""
        if not isinstance(params, dict):
            return [Finding(path="", message="the params must be an object: they are passed by name")]
        try:
            if self._checked.is_valid(params):
                return []
        except ValueTooComplex as exc:
            return [Finding(path="", message=str(exc))]
        found = self._checked.errors(params, _MOST_FINDINGS)
        if found is None:
            return [Finding(path="", message="does not match the schema; it is too large to say where")]
        return [finding for error in found for finding in _findings(error)][:_MOST_FINDINGS]


def _findings(error: SchemaError) -> list[Finding]:
    match error.kind:
        case ValidationErrorKind.Required(property=name):
            return [_finding((*error.instance_path, str(name)), "is required")]
        case ValidationErrorKind.AdditionalProperties(unexpected=names):
            return [_finding((*error.instance_path, name), "is not allowed") for name in names]
        case _:
            return [_finding(error.instance_path, error.message)]


def _finding(path: Sequence[str | int], message: str) -> Finding:
    return Finding(path=path_text(tuple(path))[:_LONGEST_PATH], message=message[:_LONGEST_MESSAGE])


def _reason(exc: ValueError) -> str:
    if not isinstance(exc, SchemaError):
        return str(exc)[:_LONGEST_MESSAGE]
    place = path_text(tuple(exc.instance_path))
    return (f"{place}: {exc.message}" if place else exc.message)[:_LONGEST_MESSAGE]


def _built_in(name: str) -> ParamsProfile:
    text = (files("trunkline.protocols") / "schemas" / f"{name}.json").read_bytes()
    return ParamsProfile(name, msgspec.json.decode(text, type=JsonObject))


_profiles: dict[str, ParamsProfile] = {name: _built_in(name) for name in BUILT_IN}


def register_profile(name: str, schema: JsonObject) -> ParamsProfile:
    """Makes a profile known under a name; the same name again replaces it. Raises `InvalidProfile`."""
    if name in BUILT_IN:
        raise InvalidProfile(f"'{name}' is a built-in profile", fix="Choose another name.")
    if not _NAME.fullmatch(name):
        raise InvalidProfile("that is not a valid profile name", fix=f"Use {NAME_RULE}.")
    profile = ParamsProfile(name, schema)
    _profiles[name] = profile
    return profile


def known_profiles() -> Mapping[str, ParamsProfile]:
    return _profiles


def find_profile(wanted: Json) -> ParamsProfile:
    """The profile with a name, or made from a schema; raises `InvalidProfile`."""
    if isinstance(wanted, dict):
        return ParamsProfile("given as a schema", wanted)
    if not isinstance(wanted, str):
        raise InvalidProfile("it must be the name of a profile, or a JSON Schema object")
    known = _profiles.get(wanted)
    if known is not None:
        return known
    closest = get_close_matches(wanted, _profiles, n=1)
    hint = f"did you mean '{closest[0]}'?" if closest else f"known here: {', '.join(_profiles)}"
    raise InvalidProfile(
        f"no profile is named '{wanted[:_LONGEST_MESSAGE]}'; {hint}",
        fix="Use an existing profile, or put NAME.json into the folder in the setting profiles.",
    )
