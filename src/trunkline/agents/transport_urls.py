"""
What carries the calls of an agent, and the form that its url has then.

    https          http://host:port/path or https://…                                       (agents.urls)
    aws-agentcore  arn:aws:bedrock-agentcore:REGION:ACCOUNT:runtime/NAME, ?qualifier=ENDPOINT after it
    stdio          stdio:NAME; which program that is, the operator's settings say

The three forms have no text in common, so a url alone tells what carries it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from trunkline.agents.http_urls import MAX_URL_CHARACTERS, UrlError, parse_url
from trunkline.agents.model import TransportName

_NAME = "[A-Za-z0-9][A-Za-z0-9_-]{0,127}"
_RUNTIME = re.compile(
    r"(?P<arn>arn:aws(?:-[a-z]+){0,3}:bedrock-agentcore:(?P<region>[a-z]{2,4}(?:-[a-z]+){1,3}-[0-9]{1,2}):[0-9]{12}"
    rf":runtime/{_NAME}(?:/runtime-endpoint/{_NAME})?)(?:\?qualifier=(?P<qualifier>{_NAME}))?"
)
_PROGRAM = re.compile(r"stdio:(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{0,62})")
_RUNTIME_FORM = (
    "arn:aws:bedrock-agentcore:REGION:ACCOUNT:runtime/NAME, with ?qualifier=ENDPOINT after it if needed"
)

# What of our headers a call of InvokeAgentRuntime can say.
_TO_A_RUNTIME = frozenset(
    {"content-type", "accept", "x-zone-session", "traceparent", "tracestate", "baggage"}
)


class AgentCoreRuntime(NamedTuple):
    """An agent runtime of Amazon Bedrock AgentCore."""

    arn: str
    region: str
    # The endpoint of it that is meant; None: its default one.
    qualifier: str | None


def transport_of(url: str) -> TransportName:
    """By its form; whether it can be called is another question."""
    scheme = url.partition(":")[0].lower()
    if scheme == "arn":
        return "aws-agentcore"
    return "stdio" if scheme == "stdio" else "https"


def forwarded_headers(transport: TransportName, headers: Mapping[str, str]) -> Mapping[str, str]:
    """Those of a request's headers that leave with it."""
    match transport:
        case "https":
            return headers
        case "aws-agentcore":
            return {name: value for name, value in headers.items() if name.lower() in _TO_A_RUNTIME}
        case "stdio":
            return {}


def parse_runtime(url: str) -> AgentCoreRuntime:
    """Raises `UrlError`."""
    parts = _RUNTIME.fullmatch(url) if len(url) <= MAX_URL_CHARACTERS else None
    if parts is None:
        raise UrlError(f"it must have the form {_RUNTIME_FORM}")
    return AgentCoreRuntime(parts["arn"], parts["region"], parts["qualifier"])


def parse_program(url: str) -> str:
    """The name that the operator's settings know the program by; raises `UrlError`."""
    parts = _PROGRAM.fullmatch(url)
    if parts is None:
        raise UrlError(
            "it must have the form stdio:NAME, and NAME must consist of letters, digits, '-', '_' and '.'"
        )
    return parts["name"]


def check_transport_url(transport: TransportName, url: str) -> str | None:
    """Why this url cannot be called by this transport, or None. The text reads on after "the url"."""
    meant = transport_of(url)
    try:
        match transport:
            case "aws-agentcore":
                parse_runtime(url)
            case "stdio":
                parse_program(url)
            case "https" if meant == "https":
                parse_url(url)
            case _:
                return f"it belongs to another transport; set transport to {meant}"
    except UrlError as exc:
        return str(exc)
    return None
