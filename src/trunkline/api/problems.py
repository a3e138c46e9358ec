"""
Every error as `application/problem+json`. One table maps errors to statuses.

A problem says what went wrong (`detail`), how to fix it (`fix`), where the invalid values are (`errors`), and the
correlation id of the request in the server's log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from trunkline.api.correlation_ids import HEADER, correlation_id_of
from trunkline.api.resources.common import Problem, finding_resource
from trunkline.errors import (
    AlreadyExists,
    Conflict,
    Finding,
    Invalid,
    NotAllowed,
    NotFound,
    NotReady,
    Overloaded,
    SignatureRefused,
    StaleVersion,
    TooManyRequests,
    TrunklineError,
    Unavailable,
)
from trunkline.jsontypes import encode
from trunkline.services.agents.push_notifications import PUSH_PATH
from trunkline.services.people.answer_links import ANSWER_PATH
from trunkline.services.triggers.webhooks import HOOK_PATH
from trunkline.telemetry import log_events

PROBLEM_JSON = "application/problem+json"
# The key in a request's scope for an error that was logged already.
_LOGGED = "trunkline.logged"
# In a URL, each of these is followed by a token.
_HOOK_PREFIXES = (f"{PUSH_PATH}/", f"{HOOK_PATH}/", f"{ANSWER_PATH}/")

log = structlog.stdlib.get_logger(__name__)


class MalformedBody(TrunklineError):
    """The body could not be read."""

    fix = "Send a body that is valid JSON in UTF-8."


class BodyTooLarge(TrunklineError):
    """The body is too large."""

    fix = "Send a smaller body, or pass large content as a URL."


class AgentUnclear(TrunklineError):
    """The agent's dialect cannot be determined."""

    fix = "Set the agent's protocol, or make its agent card reachable."


class Kind(NamedTuple):
    status: int
    name: str
    title: str

    @property
    def type(self) -> str:
        return f"urn:trunkline:problem:{self.name}"


_INTERNAL = Kind(500, "internal-error", "Internal error")

# The first class in an error's MRO that is listed here decides.
KINDS: dict[type[Exception], Kind] = {
    MalformedBody: Kind(400, "broken-body", "Broken body"),
    SignatureRefused: Kind(401, "signature-refused", "Signature refused"),
    NotAllowed: Kind(403, "not-allowed", "Not allowed"),
    NotFound: Kind(404, "not-found", "Not found"),
    AlreadyExists: Kind(409, "already-exists", "Already exists"),
    Conflict: Kind(409, "conflict", "Conflict"),
    StaleVersion: Kind(412, "stale-version", "Stale version"),
    BodyTooLarge: Kind(413, "body-too-large", "Body too large"),
    Invalid: Kind(422, "invalid", "Invalid"),
    AgentUnclear: Kind(502, "agent-unclear", "Agent unclear"),
    TooManyRequests: Kind(429, "too-many-requests", "Too many requests"),
    Overloaded: Kind(503, "overloaded", "Overloaded"),
    Unavailable: Kind(503, "unavailable", "Unavailable"),
    TrunklineError: _INTERNAL,
}
_UNKNOWN_ROUTE = Kind(404, "unknown-route", "Unknown route")
_WRONG_METHOD = Kind(405, "method-not-allowed", "Method not allowed")


def kind_of(error: Exception) -> Kind:
    return next((KINDS[cls] for cls in type(error).__mro__ if cls in KINDS), _INTERNAL)


def problem(
    request: Request,
    kind: Kind,
    detail: str,
    fix: str,
    *,
    fix_command: str | None = None,
    errors: Iterable[Finding] = (),
    headers: dict[str, str] | None = None,
) -> Response:
    content = _content(kind, detail, fix, correlation_id_of(request.scope))
    if fix_command is not None:
        content["fix_command"] = fix_command
    invalid = [finding_resource(finding) for finding in errors]
    if invalid:
        content["errors"] = invalid
    return Response(encode(content), kind.status, headers, media_type=PROBLEM_JSON)


def refusal(kind: Kind, detail: str, fix: str, correlation_id: str) -> bytes:
    """A complete HTTP response to bytes that could not be read as a request."""
    body = encode(_content(kind, detail, fix, correlation_id))
    head = (
        f"HTTP/1.1 {kind.status} {kind.title}\r\n"
        f"Content-Type: {PROBLEM_JSON}\r\nContent-Length: {len(body)}\r\n"
        f"{HEADER}: {correlation_id}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


def _content(kind: Kind, detail: str, fix: str, correlation_id: str) -> Problem:
    return {
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "fix": fix,
        "correlation_id": correlation_id,
    }


def problem_of(request: Request, error: TrunklineError) -> Response:
    """The response to an expected error."""
    kind = kind_of(error)
    headers = None
    if isinstance(error, Overloaded):
        headers = {"Retry-After": str(error.retry_after_seconds)}
    elif kind.status >= 500:
        log_failure(request.scope, error)
    findings = error.findings if isinstance(error, Invalid | NotReady) else ()
    return problem(
        request,
        kind,
        error.message,
        error.fix,
        fix_command=error.fix_command,
        errors=findings,
        headers=headers,
    )


def unexpected(request: Request, error: Exception) -> Response:
    """The response to an unexpected error. Its cause is only logged."""
    log_failure(request.scope, error)
    return problem(
        request,
        _INTERNAL,
        "An unexpected error occurred while processing this request.",
        "Try again. If it happens again, look up the correlation id in the server's log, which "
        "has the cause.",
    )


def log_failure(scope: Scope, error: Exception) -> None:
    """Logs each error once, however many layers it passes."""
    if scope.get(_LOGGED) is error:
        return
    scope[_LOGGED] = error
    log.error(
        log_events.REQUEST_FAILED,
        method=scope["method"],
        path=redacted_path(scope["path"]),
        correlation_id=correlation_id_of(scope),
        error=str(error),
        exc_info=error,
    )


def redacted_path(path: str) -> str:
    """A request's path for the log, without the token of a push notification, a webhook or an answer link."""
    prefix = next((prefix for prefix in _HOOK_PREFIXES if path.startswith(prefix)), None)
    return path if prefix is None else f"{prefix}***"


def unknown_route(request: Request) -> Response:
    path = request.url.path
    fix = "See /openapi.json for all paths."
    if path.endswith("/") and path != "/":
        fix = f"Remove the trailing slash: {path.rstrip('/')}"
    return problem(request, _UNKNOWN_ROUTE, f"The path {path} does not exist.", fix)


def method_not_allowed(request: Request, methods: Iterable[str]) -> Response:
    allowed = ", ".join(sorted(methods))
    return problem(
        request,
        _WRONG_METHOD,
        f"{request.url.path} does not support {request.method}.",
        f"Use one of: {allowed}.",
        headers={"Allow": allowed},
    )


_AT = re.compile(r" - at `(?:key in )?\$\.?(?P<path>[^`]*)`$")


def finding_of(error: msgspec.ValidationError) -> Finding:
    """Where and what, taken from msgspec's message (``Expected `str`, got `int` - at `$.text` ``)."""
    text = str(error)
    found = _AT.search(text)
    if found is None:
        return Finding(path="", message=text)
    return Finding(path=found["path"], message=text[: found.start()])
