"""
An answer of the HTTP+JSON binding, opened.

    {"task": {…}}  {"message": {…}}  {"id", "status", …}       as in the other binding, without an envelope
    {"error": {"code": 404, "status": "NOT_FOUND", "message": "…", "details": [
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND", "domain": "…"}]}}
    {"type": "https://a2a-protocol.org/errors/task-not-found", "title": "…", "status": 404, "detail": "…"}

An error keeps its HTTP status, and gets the number that the same error has in the JSON-RPC binding: policies
that name -32001 hold for both.
"""

from __future__ import annotations

import msgspec

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols.a2a.v1.errors import (
    CODE_BY_REASON,
    FIX_BY_CODE,
    OTHER_DIALECT,
    UNKNOWN_TASK,
    reason_in,
)
from trunkline.protocols.a2a.v1.lenient_parsing import parse_lenient_result
from trunkline.protocols.a2a.v1.model import V1Result
from trunkline.protocols.a2a.v1.parsed_result import V1ParsedResult, parse_exact_result
from trunkline.protocols.answer_json import JsonReader, NotJson, json_kind, parse
from trunkline.protocols.http_failures import fix_for_status
from trunkline.protocols.outcomes import Failed, step_error

_results = JsonReader(V1Result)
# What a server answers that has no such address, when it does not say what it misses.
_NO_SUCH_ADDRESS = frozenset({404, 405, 501})


def parse_result(body: bytes) -> V1ParsedResult | Failed:
    """What the answer says; raises `NotJson`."""
    try:
        exact = _results.read(body)
    except msgspec.ValidationError:
        return _parse_leniently(body)
    return parse_exact_result(exact) or _parse_leniently(body)


def parse_task_list(body: bytes) -> JsonObject | Failed:
    """The answer as it is; raises `NotJson`."""
    answer = parse(body)
    if not isinstance(answer, dict):
        raise NotJson(f"The answer is {json_kind(answer)}, not an object")
    return _failure_in(answer) or answer


def _parse_leniently(body: bytes) -> V1ParsedResult | Failed:
    answer = parse_task_list(body)
    return answer if isinstance(answer, Failed) else parse_lenient_result(answer)


def _failure_in(answer: JsonObject) -> Failed | None:
    error, status = answer.get("error"), answer.get("status")
    if isinstance(error, dict) and not isinstance(status, dict):
        return _failed_by_status(error)
    if _is_http_error(status) or (isinstance(answer.get("type"), str) and "title" in answer):
        return _failed_by_problem(answer)
    return None


def _failed_by_status(error: JsonObject) -> Failed:
    """What `google.rpc.Status` says."""
    code, details = error.get("code"), error.get("details")
    reason = reason_in(details)
    number = CODE_BY_REASON.get(reason or "")
    if number is None and isinstance(code, int) and code < 0:
        number = code
    name = reason or error.get("status") or code
    return _failed(name, error.get("message"), code, number, details)


def _failed_by_problem(problem: JsonObject) -> Failed:
    """What a problem of RFC 9457 says, or what looks like one."""
    kind = problem.get("type")
    reason = kind.rpartition("/")[2].replace("-", "_").upper() if isinstance(kind, str) else ""
    number = CODE_BY_REASON.get(reason)
    said = [problem.get(name) for name in ("detail", "message", "error", "title")]
    message = next((text for text in said if isinstance(text, str) and text), None)
    name = reason if number is not None else problem.get("title") or problem.get("status")
    return _failed(name, message, problem.get("status"), number, problem)


def _failed(name: Json, message: Json, status: Json, number: int | None, detail: Json) -> Failed:
    http_status = status if isinstance(status, int) and _is_http_error(status) else None
    fix = FIX_BY_CODE.get(number, "") if number is not None else fix_for_status(http_status)
    return Failed(
        error=step_error(
            "agent_http_error",
            f"A2A Error {_shown(name)}: {_shown(message)}",
            fix=fix,
            jsonrpc_code=number,
            http_status=http_status,
            detail=detail,
        ),
        other_dialect=number in OTHER_DIALECT if number is not None else http_status in _NO_SUCH_ADDRESS,
        task_unknown=number == UNKNOWN_TASK,
    )


def _is_http_error(status: Json) -> bool:
    return isinstance(status, int) and 400 <= status <= 599


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else encode(value).decode()
