"""
litecone's agents as `agents apply` takes them.

    {"name": "…", "url": "…", "description": "…", "auth_type": "none | bearer | apikey", "auth_config": {…},
     "timeout_ms": 30000, "retry_config": {"max_retries", "initial_delay_ms", "max_delay_ms", "backoff_multiplier"},
     "circuit_breaker_config": {"enabled", "failure_threshold", "failure_rate_threshold", "timeout_seconds", …},
     "protocol": "…", "protocol_config": {…}}

A secret is never carried over: the name of an environment variable replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from trunkline.agents.authentication.auth_config import secret_variable
from trunkline.errors import Finding
from trunkline.importing.litecone.source_fields import SourceFields
from trunkline.importing.report import ImportReport
from trunkline.jsontypes import Json, JsonObject

# Protocols of which an answer has parts, not one object.
PROTOCOLS_WITH_PARTS = ("jsonrpc-2.0", "a2a")
_HEADER = "X-API-Key"
_USER = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@")
_BY_HAND = "Set it by hand in the imported file."


# What keeps an agent from being registered: only who registers it knows.
AgentCheckFunction = Callable[[JsonObject], Sequence[Finding]]


def read_agent(source: JsonObject, report: ImportReport, check: AgentCheckFunction) -> JsonObject | None:
    """The agent; None when there is none, or none that can be registered, which is then reported."""
    fields = SourceFields(source, (), report)
    name, url = fields.text("name"), _without_secrets(fields)
    agent: JsonObject = {}
    for key in ("description", "protocol"):
        value = fields.text(key)
        if value is not None:
            agent[key] = value
    config = fields.any("protocol_config")
    if config is not None:
        agent["protocol_config"] = config
    timeout = fields.integer("timeout_ms", 1) or fields.integer("timeout", 1)
    if timeout is not None:
        agent["timeout_ms"] = timeout
    agent |= _retry(fields.object("retry_config"))
    agent |= _breaker(fields.object("circuit_breaker_config"))
    agent |= _auth(name or "", fields)
    fields.ignore(
        "id",
        "created_at",
        "updated_at",
        "created_by",
        "updated_by",
        why="Trunkline assigns them when the agent is saved",
    )
    status = fields.text("status")
    fields.finish()
    if name is None or url is None:
        report.lost((), "the agent has no 'name' or no 'url'", "Correct it in the source, and import again.")
        return None
    if status not in (None, "active"):
        report.lost(
            ("status",),
            f"the agent has the status {status[:80]!r} in litecone and is left out",
            "Register it by hand if it is needed.",
        )
        return None
    found: JsonObject = {"name": name, "url": url, **agent}
    findings = check(found)
    for finding in findings:
        report.lost(
            (),
            f"the agent is left out, because it cannot be registered: {finding.path}: {finding.message}",
            "Correct it in the source, and import again.",
        )
    return None if findings else found


def _without_secrets(fields: SourceFields) -> str | None:
    """The address without a name and a password in it, and without a query, where tokens stand."""
    url = fields.text("url")
    if url is None:
        return None
    path = (*fields.path, "url")
    if (match := _USER.match(url)) is not None:
        fields.report.lost(
            path, "the name and the password in the address are left out", "Use auth_type basic instead."
        )
        url = match["scheme"] + url[match.end() :]
    address, mark, _ = url.partition("?")
    if mark:
        fields.report.lost(
            path,
            "the query of the address (everything after '?') is left out, because it may contain a secret",
            "Set a secret as auth_type api_key with `in: query`, and add the rest of the query by hand.",
        )
    return address


def answers_in_parts(agent: JsonObject) -> bool:
    return str(agent.get("protocol", "")).startswith(PROTOCOLS_WITH_PARTS)


def _retry(fields: SourceFields | None) -> JsonObject:
    if fields is None:
        return {}
    retry: JsonObject = {}
    retries = fields.integer("max_retries", 0)
    if retries is not None:
        # There the first call is not counted.
        retry["max_attempts"] = retries + 1
    for theirs, ours in (("initial_delay_ms", "first_delay"), ("max_delay_ms", "max_delay")):
        delay = fields.integer(theirs, 0)
        if delay is not None:
            retry[ours] = f"{delay}ms"
    multiplier = fields.number("backoff_multiplier")
    if multiplier == 1:
        retry["backoff"] = "fixed"
    elif multiplier not in (None, 2):
        fields.report.lost(
            (*fields.path, "backoff_multiplier"),
            f"delays double with each attempt in Trunkline, and cannot be multiplied by {multiplier:g}",
            "Choose `backoff` and `max_delay` by hand.",
        )
    fields.finish()
    return {"retry": retry} if retry else {}


def _breaker(fields: SourceFields | None) -> JsonObject:
    if fields is None:
        return {}
    enabled = fields.any("enabled")
    breaker: JsonObject = {}
    failures, probes = fields.integer("failure_threshold", 1), fields.integer("half_open_max_calls", 1)
    rate, seconds = fields.number("failure_rate_threshold"), fields.integer("timeout_seconds", 1)
    if failures is not None:
        breaker["failures"] = failures
    if rate is not None:
        breaker["rate"] = rate
    if seconds is not None:
        breaker["open_ms"] = seconds * 1_000
    if probes is not None:
        breaker["probes"] = probes
    if enabled is not False and fields.any("window_size_seconds") is not None:
        fields.report.lost(
            (*fields.path, "window_size_seconds"),
            "the breaker counts failures among the last calls, not in the last seconds",
            "Choose `breaker.window`, a number of calls, by hand.",
        )
    fields.finish()
    return {} if enabled is False else {"breaker": breaker or True}


def _auth(agent: str, fields: SourceFields) -> JsonObject:
    config = fields.object("auth_config", secret=True)
    given = None if config is None else config.text("type")
    kind = (fields.text("auth_type") or given or "none").lower().replace("_", "").replace("-", "")
    match kind:
        case "none":
            if config is not None and config.names():
                fields.report.lost(
                    (*fields.path, "auth_config"),
                    "the agent has an auth_config without an auth_type",
                    _BY_HAND,
                )
            return {}
        case "bearer":
            return {
                "auth_type": "bearer",
                "auth_config": {"token": _secret(agent, config, ("token",), fields)},
            }
        case "apikey":
            header = None if config is None else config.text("header_name")
            value = _secret(agent, config, ("key", "api_key"), fields)
            return {
                "auth_type": "api_key",
                "auth_config": {"name": header or _HEADER, "value": value, "in": "header"},
            }
        case _:
            # The word itself might be a secret in the wrong place.
            fields.report.lost(("auth_type",), "unknown auth_type", _BY_HAND)
            return {}


def _secret(agent: str, config: SourceFields | None, keys: tuple[str, ...], fields: SourceFields) -> Json:
    variable = secret_variable(agent)
    names = (
        []
        if config is None
        else [name for name in config.names() if name not in (*keys, "type", "header_name")]
    )
    for name in names:
        # Never with its value.
        fields.report.lost((*fields.path, "auth_config", name), "unknown field of auth_config", _BY_HAND)
    fields.report.note(
        (*fields.path, "auth_config"),
        "the secret is not imported",
        f"Set the environment variable {variable} before you apply the agents.",
    )
    return {"env": variable}
