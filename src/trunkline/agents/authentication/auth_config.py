"""
Authentication to agents.

An agent's `auth_config` becomes its `Credentials`: the headers (or the query parameter) of a request, what is
needed to fetch or sign a token, TLS, and the names under which a record of the request shows them. Pure: who encrypts
and keeps the secrets is not known here, and no message ever repeats one.

    none     {}
    bearer   {token}
    api_key  {name, value, in: header | query | cookie}
    basic    {username, password}
    headers  {name: value, …}
    oauth2   {token_url, client_id, client_secret, scope?, audience?, client_auth: basic | post, token_tls?}
    signed   {key, issuer, audience, lifetime_seconds?, key_id?}
    mtls     {certificate, key, authority?}

Each but mtls may also have `tls: {authority?, certificate?, key?}`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping

import msgspec

from trunkline.agents.authentication.credentials import (
    MAX_TOKEN_SECONDS,
    NO_CREDENTIALS,
    Credentials,
    OAuthClient,
    RequestSigner,
    TlsConfig,
)
from trunkline.agents.http_urls import UrlError, origin_of, parse_url
from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json, JsonObject

__all__ = [
    "NO_CREDENTIALS",
    "RESERVED_HEADERS",
    "Credentials",
    "credentials",
    "secret_variable",
    "sends_elsewhere",
    "validate_auth_config",
]

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
# What a cookie's value is made of, by RFC 6265.
_COOKIE = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NOT_IN_A_VARIABLE = re.compile(r"[^A-Z0-9]+")
_AUTHORIZATION = "Authorization"
# It stands in the head of each token, which verifiers bound.
_MAX_KEY_ID_CHARACTERS = 200


def secret_variable(agent: str, part: str = "") -> str:
    """The environment variable that stands for a secret of this agent, e.g. `TRUNKLINE_SECRET_MY_AGENT`."""
    words = filter(None, (_NOT_IN_A_VARIABLE.sub("_", word.upper()).strip("_") for word in (agent, part)))
    return "_".join(("TRUNKLINE_SECRET", *words))


def validate_auth_config(auth_type: str, config: JsonObject | None) -> list[Finding]:
    """What is wrong with an `auth_config`; empty: it can be used."""
    fields = config or {}
    if auth_type == "mtls":
        return _validate_mutual(fields)
    own, tls = _split_off_tls(fields)
    findings = [] if tls is None else _validate_tls(tls, "auth_config.tls")
    match auth_type:
        case "headers":
            return findings + _validate_headers(own)
        case _ if auth_type in _FIELDS:
            return findings + _validate_fields(auth_type, own)
        case _:
            known = ", ".join((*_FIELDS, "headers", "mtls"))
            return [
                Finding(path="auth_type", message=f"'{auth_type}' is not a known type; use one of: {known}")
            ]


def credentials(agent: str, auth_type: str, config: JsonObject | None) -> Credentials:
    """The credentials for calls of this agent; raises `Invalid`."""
    findings = validate_auth_config(auth_type, config)
    if findings:
        raise Invalid("The agent's auth_config is invalid.", findings=findings)
    if auth_type == "mtls":
        return Credentials(tls=_tls(config or {}))
    own, tls = _split_off_tls(config or {})
    found = _credentials(agent, auth_type, own)
    return found if tls is None else msgspec.structs.replace(found, tls=_tls(tls))


def sends_elsewhere(stored: JsonObject, changed: JsonObject) -> bool:
    """Whether a change that leaves the client's secret as it is would have it sent to another host."""
    before, after = (origin_of(str(config.get("token_url", ""))) for config in (stored, changed))
    return before != after and stored.get("client_secret") == changed.get("client_secret")


def _credentials(agent: str, auth_type: str, own: Mapping[str, Json]) -> Credentials:
    fields = {name: value for name, value in own.items() if isinstance(value, str)}
    variable = f"${secret_variable(agent)}"
    match auth_type:
        case "bearer":
            return _in_header(
                _AUTHORIZATION, f"Bearer {fields['token']}", f"Bearer {variable}", fields["token"]
            )
        case "basic":
            pair = f"{fields['username']}:{fields['password']}"
            encoded = b64encode(pair.encode()).decode()
            return _in_header(
                _AUTHORIZATION, f"Basic {encoded}", f"Basic {variable}", encoded, fields["password"]
            )
        case "api_key":
            return _api_key(fields["name"], fields["value"], fields.get("in", "header"), variable)
        case "headers":
            return Credentials(
                headers=fields,
                shown={name.lower(): f"${secret_variable(agent, name)}" for name in fields},
                secrets=tuple(secret for value in fields.values() for secret in (value, *value.split())),
            )
        case "oauth2":
            client = msgspec.convert({**fields, "tls": _split_off_tls(own, "token_tls")[1]}, OAuthClient)
            shown = {_AUTHORIZATION.lower(): f"Bearer {variable}"}
            return Credentials(oauth=client, shown=shown, secrets=(client.client_secret,))
        case "signed":
            given = {name: value for name, value in own.items() if value is not None}
            signer = msgspec.convert(given, RequestSigner)
            shown = {_AUTHORIZATION.lower(): f"Bearer {variable}"}
            return Credentials(signer=signer, shown=shown, secrets=(signer.key,))
        case _:
            return NO_CREDENTIALS


def _in_header(name: str, value: str, shown: str, *secrets: str) -> Credentials:
    return Credentials(headers={name: value}, shown={name.lower(): shown}, secrets=secrets)


def _api_key(name: str, value: str, place: str, variable: str) -> Credentials:
    match place:
        case "query":
            return Credentials(query=(name, value), shown={name: variable}, secrets=(value,))
        case "cookie":
            return _in_header("Cookie", f"{name}={value}", f"{name}={variable}", value)
        case _:
            return _in_header(name, value, variable, value)


def _split_off_tls(
    fields: Mapping[str, Json], name: str = "tls"
) -> tuple[dict[str, Json], dict[str, Json] | None]:
    """Splits off the TLS options. A header can have the same name, but its value is not an object."""
    tls = fields.get(name)
    if not isinstance(tls, dict):
        return dict(fields), None
    return {key: value for key, value in fields.items() if key != name}, tls


def _tls(fields: Mapping[str, Json]) -> TlsConfig:
    return msgspec.convert({name: fields.get(name) for name in TlsConfig.__struct_fields__}, TlsConfig)


def _validate_mutual(fields: Mapping[str, Json]) -> list[Finding]:
    missing = [
        _finding(name, "is required and must be PEM")
        for name in ("certificate", "key")
        if fields.get(name) is None
    ]
    return missing or _validate_tls(fields, "auth_config")


def _validate_tls(fields: Mapping[str, Json], place: str) -> list[Finding]:
    # Loads 7 MB of a library that agents without certificates do not need.
    from trunkline.agents.authentication.certificates import validate_tls  # noqa: PLC0415

    return validate_tls(fields, place)


def _wrong_signing_key(value: Json) -> str | None:
    from trunkline.agents.authentication.certificates import wrong_signing_key  # noqa: PLC0415 - as above

    return wrong_signing_key(value)


def _validate_fields(auth_type: str, fields: Mapping[str, Json]) -> list[Finding]:
    known = _FIELDS[auth_type]
    findings = [
        _finding(name, "must be an object" if name == "tls" else f"is not a field of auth_type '{auth_type}'")
        for name in fields
        if name not in known
    ]
    for name, wrong_in in known.items():
        wrong = wrong_in(fields.get(name))
        findings += [] if wrong is None else [_finding(name, wrong)]
    if auth_type == "api_key" and not findings:
        findings += _validate_api_key(str(fields["name"]), str(fields["value"]), fields.get("in"))
    if isinstance(token_tls := fields.get("token_tls"), dict):
        findings += _validate_tls(token_tls, "auth_config.token_tls")
    return findings


def _validate_api_key(name: str, value: str, place: Json) -> list[Finding]:
    if place in (None, "header"):
        wrong = _wrong_name(name)
        return [] if wrong is None else [_finding("name", wrong)]
    if place == "cookie" and not _TOKEN.fullmatch(name):
        return [_finding("name", "is not a valid cookie name")]
    if place == "cookie" and not _COOKIE.fullmatch(value):
        return [_finding("value", "contains a character that is not allowed in a cookie")]
    return []


def _validate_headers(fields: Mapping[str, Json]) -> list[Finding]:
    if not fields:
        return [Finding(path="auth_config", message="must contain at least one header")]
    findings = [_finding(name, wrong) for name in fields if (wrong := _wrong_name(name))]
    findings += [_finding(name, wrong) for name, value in fields.items() if (wrong := _wrong_value(value))]
    if len({name.lower() for name in fields}) < len(fields):
        findings.append(Finding(path="auth_config", message="contains the same header twice"))
    return findings


def _wrong_name(name: str) -> str | None:
    if not _TOKEN.fullmatch(name):
        return "is not a valid header name"
    ours = name.lower() in RESERVED_HEADERS or name.lower() == "content-type"
    return "is reserved, because Trunkline sets this header itself" if ours else None


def _wrong_value(value: Json) -> str | None:
    if not isinstance(value, str) or not value:
        return "is required and must be a string"
    # A line break would end the header and begin another.
    return None if _VISIBLE.fullmatch(value) else "must be printable ASCII without leading or trailing spaces"


def _wrong_text(value: Json) -> str | None:
    return "is required and must be a string" if value == "" else _wrong_password(value)


def _wrong_password(value: Json) -> str | None:
    if not isinstance(value, str):
        return "is required and must be a string"
    return "must not contain control characters" if _CONTROL.search(value) else None


def _wrong_username(value: Json) -> str | None:
    wrong = _wrong_text(value)
    return "must not contain a colon" if wrong is None and ":" in str(value) else wrong


def _wrong_url(value: Json) -> str | None:
    if not isinstance(value, str) or not value:
        return "is required and must be a string"
    try:
        parse_url(value)
    except UrlError:
        return "must be a URL such as https://host:port/path"
    return None


def _wrong_option(value: Json) -> str | None:
    return None if value is None else _wrong_value(value)


def _wrong_object(value: Json) -> str | None:
    return None if value is None or isinstance(value, dict) else "must be an object"


def _wrong_lifetime(value: Json) -> str | None:
    if value is None:
        return None
    # A bool is an int in Python.
    if type(value) is int and 1 <= value <= MAX_TOKEN_SECONDS:
        return None
    return f"must be a whole number of seconds from 1 to {MAX_TOKEN_SECONDS}"


def _wrong_key_id(value: Json) -> str | None:
    if isinstance(value, str) and len(value) > _MAX_KEY_ID_CHARACTERS:
        return f"must have at most {_MAX_KEY_ID_CHARACTERS} characters"
    return _wrong_option(value)


def _one_of(*allowed: str) -> Callable[[Json], str | None]:
    def wrong_in(value: Json) -> str | None:
        return None if value is None or value in allowed else f"must be {' or '.join(allowed)}"

    return wrong_in


def _finding(field: str, message: str) -> Finding:
    return Finding(path=f"auth_config.{field}", message=message)


# The validators of the fields, by auth_type.
_FIELDS: Mapping[str, Mapping[str, Callable[[Json], str | None]]] = {
    "none": {},
    "bearer": {"token": _wrong_value},
    "api_key": {"name": _wrong_value, "value": _wrong_value, "in": _one_of("header", "query", "cookie")},
    "basic": {"username": _wrong_username, "password": _wrong_password},
    "oauth2": {
        "token_url": _wrong_url,
        "client_id": _wrong_text,
        "client_secret": _wrong_text,
        "scope": _wrong_option,
        "audience": _wrong_option,
        "client_auth": _one_of("basic", "post"),
        "token_tls": _wrong_object,
    },
    "signed": {
        "key": _wrong_signing_key,
        "issuer": _wrong_text,
        "audience": _wrong_text,
        "lifetime_seconds": _wrong_lifetime,
        "key_id": _wrong_key_id,
    },
}
