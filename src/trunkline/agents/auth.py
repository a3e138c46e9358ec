"""
How Trunkline proves who it is to an agent.

An agent's `auth_config` becomes the headers (or the query parameter) of a request, and the names under which
a record of that request shows them. Pure: who encrypts and keeps the secrets is not known here, and no
message ever repeats one.

    bearer   {token}
    api_key  {name, value, in: header | query}
    basic    {username, password}
    headers  {name: value, …}
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import quote

import msgspec

from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json, JsonObject

# What the transport itself says in a request; a second value would let one request be read as two.
RESERVED_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VISIBLE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NOT_IN_A_VARIABLE = re.compile(r"[^A-Z0-9]+")
_KEYS = {
    "none": (),
    "bearer": ("token",),
    "api_key": ("name", "value", "in"),
    "basic": ("username", "password"),
}


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into a request, and what a record of it says instead."""

    headers: Mapping[str, str] = {}
    # Name and value to add to the URL's query.
    query: tuple[str, str] | None = None
    # By header (in lower case): its value with the secret as an environment variable. For the query
    # parameter, under its own name.
    shown: Mapping[str, str] = {}
    # What must not appear in any record, whoever repeats it.
    secrets: tuple[str, ...] = ()

    def add_to(self, url: str) -> str:
        """The URL with the query parameter, where there is one."""
        return (
            url if self.query is None else _with_parameter(url, self.query[0], quote(self.query[1], safe=""))
        )


NO_CREDENTIALS = Credentials()


def secret_variable(agent: str, part: str = "") -> str:
    """The environment variable that stands for a secret of this agent, e.g. `TRUNKLINE_SECRET_MY_AGENT`."""
    words = filter(None, (_NOT_IN_A_VARIABLE.sub("_", word.upper()).strip("_") for word in (agent, part)))
    return "_".join(("TRUNKLINE_SECRET", *words))


def validate_auth_config(auth_type: str, config: JsonObject | None) -> list[Finding]:
    """What is wrong with an `auth_config`; empty: it can be used."""
    fields = config or {}
    match auth_type:
        case "none" | "bearer" | "api_key" | "basic":
            return _validate_fields(auth_type, fields)
        case "headers":
            return _validate_headers(fields)
        case _:
            known = ", ".join((*_KEYS, "headers"))
            return [Finding(path="auth_type", message=f"'{auth_type}' is not known; it is one of: {known}")]


def credentials(agent: str, auth_type: str, config: JsonObject | None) -> Credentials:
    """The credentials for calls of this agent; raises `Invalid`."""
    findings = validate_auth_config(auth_type, config)
    if findings:
        raise Invalid("The agent's auth_config cannot be used.", findings=findings)
    fields = {name: str(value) for name, value in (config or {}).items()}
    variable = f"${secret_variable(agent)}"
    match auth_type:
        case "bearer":
            return _in_header(
                "Authorization", f"Bearer {fields['token']}", f"Bearer {variable}", fields["token"]
            )
        case "basic":
            pair = f"{fields['username']}:{fields['password']}"
            encoded = b64encode(pair.encode()).decode()
            return _in_header(
                "Authorization", f"Basic {encoded}", f"Basic {variable}", encoded, fields["password"]
            )
        case "api_key" if fields.get("in", "header") == "query":
            name, value = fields["name"], fields["value"]
            return Credentials(query=(name, value), shown={name: variable}, secrets=(value,))
        case "api_key":
            return _in_header(fields["name"], fields["value"], variable, fields["value"])
        case "headers":
            return Credentials(
                headers=fields,
                shown={name.lower(): f"${secret_variable(agent, name)}" for name in fields},
                secrets=tuple(secret for value in fields.values() for secret in (value, *value.split())),
            )
        case _:
            return NO_CREDENTIALS


def _in_header(name: str, value: str, shown: str, *secrets: str) -> Credentials:
    return Credentials(headers={name: value}, shown={name.lower(): shown}, secrets=secrets)


def _with_parameter(url: str, name: str, value: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{quote(name, safe='')}={value}"


def _validate_fields(auth_type: str, fields: Mapping[str, Json]) -> list[Finding]:
    known = _KEYS[auth_type]
    findings = [
        _finding(name, f"is not a field of auth_type '{auth_type}'") for name in fields if name not in known
    ]
    for name in known:
        findings += _validate_field(name, fields)
    return findings


def _validate_field(name: str, fields: Mapping[str, Json]) -> list[Finding]:
    value = fields.get(name)
    match name:
        case "in":
            in_header = value in (None, "header")
            if in_header and isinstance(key := fields.get("name"), str) and (wrong := _wrong_name(key)):
                return [_finding("name", wrong)]
            return [] if in_header or value == "query" else [_finding("in", "must be header or query")]
        case "username" | "password":
            wrong = _wrong_text(value, empty_allowed=name == "password")
            if wrong is None and name == "username" and ":" in str(value):
                wrong = "must not contain a colon"
        case _:
            wrong = _wrong_value(value)
    return [] if wrong is None else [_finding(name, wrong)]


def _validate_headers(fields: Mapping[str, Json]) -> list[Finding]:
    if not fields:
        return [Finding(path="auth_config", message="names no header")]
    findings = [_finding(name, wrong) for name in fields if (wrong := _wrong_name(name))]
    findings += [_finding(name, wrong) for name, value in fields.items() if (wrong := _wrong_value(value))]
    if len({name.lower() for name in fields}) < len(fields):
        findings.append(Finding(path="auth_config", message="names a header twice"))
    return findings


def _wrong_name(name: str) -> str | None:
    if not _TOKEN.fullmatch(name):
        return "is not a header name"
    ours = name.lower() in RESERVED_HEADERS or name.lower() == "content-type"
    return "is a header that Trunkline sets itself" if ours else None


def _wrong_value(value: Json) -> str | None:
    if not isinstance(value, str) or not value:
        return "is required, as a text"
    # A line break would end the header and begin another.
    return None if _VISIBLE.fullmatch(value) else "must be printable ASCII without spaces at its ends"


def _wrong_text(value: Json, *, empty_allowed: bool) -> str | None:
    if not isinstance(value, str) or not (value or empty_allowed):
        return "is required, as a text"
    return "must not contain a control character" if _CONTROL.search(value) else None


def _finding(field: str, message: str) -> Finding:
    return Finding(path=f"auth_config.{field}", message=message)
