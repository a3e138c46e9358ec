"""
The errors that A2A callers get. One table has each error's JSON-RPC code, its reason, and its status over HTTP+JSON.

    JSON-RPC   {"code", "message", "data": [{"@type": "…/google.rpc.ErrorInfo", "reason", "domain"}]}
    HTTP+JSON  {"error": {"code": 404, "status": "NOT_FOUND", "message", "details": [the same]}}
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Literal

from trunkline.api.problems import BodyTooLarge, MalformedBody
from trunkline.errors import Finding, Invalid, NotAllowed, NotFound, Overloaded, TrunklineError, Unavailable
from trunkline.jsontypes import Json, JsonObject

DOMAIN = "a2a-protocol.org"
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
# A message names some of what is wrong; a caller corrects that first.
_MAX_FINDINGS = 20


# The version of A2A whose statuses errors have over HTTP+JSON.
HttpStatuses = Literal["1.0.0", "1.0.1"]


class ErrorKind(Enum):
    """JSON-RPC code, HTTP status, status as google.rpc names it, and whether it is one of A2A's own errors."""

    PARSE_ERROR = (-32700, 400, "INVALID_ARGUMENT", False)
    INVALID_REQUEST = (-32600, 400, "INVALID_ARGUMENT", False)
    TOO_LARGE = (-32600, 413, "INVALID_ARGUMENT", False)
    METHOD_NOT_FOUND = (-32601, 404, "NOT_FOUND", False)
    INVALID_PARAMS = (-32602, 400, "INVALID_ARGUMENT", False)
    INTERNAL_ERROR = (-32603, 500, "INTERNAL", False)
    UNAVAILABLE = (-32603, 503, "UNAVAILABLE", False)
    TASK_NOT_FOUND = (-32001, 404, "NOT_FOUND", True)
    TASK_NOT_CANCELABLE = (-32002, 400, "FAILED_PRECONDITION", True)
    UNSUPPORTED_OPERATION = (-32004, 400, "UNIMPLEMENTED", True)
    CONTENT_TYPE_NOT_SUPPORTED = (-32005, 415, "INVALID_ARGUMENT", True)
    EXTENDED_AGENT_CARD_NOT_CONFIGURED = (-32007, 400, "FAILED_PRECONDITION", True)
    VERSION_NOT_SUPPORTED = (-32009, 400, "UNIMPLEMENTED", True)

    def __init__(self, code: int, http_status: int, rpc_status: str, is_a2a: bool) -> None:
        self.code = code
        self.http_status = http_status
        self.rpc_status = rpc_status
        self.is_a2a = is_a2a

    def status_over_http(self, statuses: HttpStatuses) -> int:
        if statuses == "1.0.0" and self is ErrorKind.TASK_NOT_CANCELABLE:
            return 409
        return self.http_status


class A2AError(Exception):
    """A request is refused; the message is for the caller."""

    def __init__(self, kind: ErrorKind, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.findings = findings

    def details(self) -> list[Json]:
        """What programs read, next to the message."""
        details: list[Json] = []
        if self.kind.is_a2a:
            details.append({"@type": _ERROR_INFO, "reason": self.kind.name, "domain": DOMAIN})
        if self.findings:
            violations: list[Json] = [
                {"field": finding.path, "description": finding.message}
                for finding in self.findings[:_MAX_FINDINGS]
            ]
            details.append({"@type": _BAD_REQUEST, "fieldViolations": violations})
        return details

    def rpc_error(self) -> JsonObject:
        """The `error` of a JSON-RPC response; 0.3 has no form for the details."""
        return {"code": self.kind.code, "message": self.message}


def invalid_params(message: str) -> A2AError:
    return A2AError(ErrorKind.INVALID_PARAMS, message)


def task_not_found(task_id: str) -> A2AError:
    return A2AError(ErrorKind.TASK_NOT_FOUND, f"Task not found: {task_id[:100]}")


# The first that an error is an instance of.
_KINDS: tuple[tuple[type[TrunklineError], ErrorKind], ...] = (
    (MalformedBody, ErrorKind.PARSE_ERROR),
    (BodyTooLarge, ErrorKind.TOO_LARGE),
    (Invalid, ErrorKind.INVALID_PARAMS),
    (NotFound, ErrorKind.TASK_NOT_FOUND),
    (NotAllowed, ErrorKind.UNSUPPORTED_OPERATION),
    (Overloaded, ErrorKind.UNAVAILABLE),
    (Unavailable, ErrorKind.UNAVAILABLE),
)


def a2a_error_of(error: TrunklineError) -> A2AError:
    """An error of our services, as a caller gets it. What only an operator can fix is not told."""
    kind = next((kind for known, kind in _KINDS if isinstance(error, known)), ErrorKind.INTERNAL_ERROR)
    if kind is ErrorKind.INTERNAL_ERROR:
        return A2AError(kind, "An unexpected error occurred while processing this request.")
    if kind is ErrorKind.UNAVAILABLE:
        return A2AError(kind, "The request cannot be processed at the moment. Try again later.")
    findings = error.findings if isinstance(error, Invalid) else ()
    return A2AError(kind, error.message, findings)
