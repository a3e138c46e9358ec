"""
What a zone says when it does not do what it was asked: JSON-RPC errors, one table.

    -32700  Parse error         not JSON; `id` is null
    -32600  Invalid Request     not a request of this contract: a batch, a notification, no version; `id` is null
    -32601  Method not found
    -32602  Invalid params      `data.fields` names each one that is wrong
    -32603  Internal error      the handler broke; its log knows why, the caller does not
    -32001  Timeout             the work took longer than its deadline
    -32000  everything else     refused at the door, interrupted by a restart, the same id with other params, …

`data` has `correlation_id` where it is known, and never a stack trace.
"""

from __future__ import annotations

from trunkline.jsontypes import JsonObject, encode

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
TIMEOUT = -32001
OTHER = -32000

MESSAGES = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid Request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
    TIMEOUT: "Timeout",
}


class ZoneFault(Exception):
    """A JSON-RPC error; handlers may raise one. `data` is for the caller to read: no secrets."""

    def __init__(self, code: int = OTHER, message: str | None = None, data: JsonObject | None = None) -> None:
        text = message if message is not None else MESSAGES.get(code, "Server error")
        super().__init__(text)
        self.code = code
        self.message = text
        self.data: JsonObject = data or {}


def error_text(fault: ZoneFault, correlation_id: str | None = None) -> bytes:
    """The JSON text of an answer's `error`."""
    data = fault.data if correlation_id is None else {**fault.data, "correlation_id": correlation_id}
    error: JsonObject = {"code": fault.code, "message": fault.message}
    return encode({**error, "data": data} if data else error)
