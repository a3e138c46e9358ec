"""
The JSON-RPC envelope of an answer.

    {"jsonrpc": "2.0", "id": "<task id>", "result": {…}}
    {"jsonrpc": "2.0", "id": "<task id>", "error": {"code": -32603, "message": "…", "data": …}}

A result without `id` is malformed, one with another `id` is not ours. An error may lack its `id`: that is
noted and the error taken. `"error": null` beside a result, and the reverse, is read as if it were not there.
"""

from __future__ import annotations

from typing import Literal, NoReturn

import msgspec
from msgspec import Raw

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols.a2a_v03.model import Result
from trunkline.protocols.a2a_v03.reading import Reading, read_exact
from trunkline.protocols.a2a_v03.tolerant import read_tolerantly
from trunkline.protocols.answer_json import JsonReader, NotJson, json_kind, parse
from trunkline.protocols.outcomes import ProtocolTranslationError

PROTOCOL = "jsonrpc-2.0"
VERSION = "2.0"

_REQUIRED_FIELDS = (
    "Let the agent always answer with 'jsonrpc': '2.0', the request's 'id', and 'result' or 'error'."
)
_SIMPLE_A2A = "The agent answers in Simple A2A: register it with protocol simple-a2a, or update the agent."


class _ExactAnswer(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    id: str
    result: Result
    error: None = None


class _WholeResult(msgspec.Struct):
    result: Raw


class RpcError(msgspec.Struct, kw_only=True):
    """What an agent says in `error`."""

    code: Json
    message: str
    data: Json = None
    notes: list[str] = []


_exact_answers = JsonReader(_ExactAnswer)
_whole_results = msgspec.json.Decoder(_WholeResult)


def open_answer(body: bytes, task_id: str) -> Reading | RpcError:
    """What the answer says; raises `NotJson` or `ProtocolTranslationError`."""
    try:
        exact = _exact_answers.read(body)
    except msgspec.ValidationError:
        return _open_tolerantly(body, task_id)
    if exact.id != task_id:
        _refuse_id(exact.id, task_id, body)
    return read_exact(exact.result) or _open_tolerantly(body, task_id)


def whole_result(body: bytes) -> Raw:
    return _whole_results.decode(body.removeprefix(b"\xef\xbb\xbf")).result


def _open_tolerantly(body: bytes, task_id: str) -> Reading | RpcError:
    response = parse(body)
    if not isinstance(response, dict):
        raise NotJson(f"The answer is {json_kind(response)}, not an object")
    _check_version(response)
    error = response.get("error")
    result = response.get("result")
    if error is not None and result is not None:
        _refuse("Response has both 'result' and 'error'", response)
    if error is not None:
        return _read_error(error, _id_notes(response, task_id))
    if "result" not in response or (result is None and "error" in response):
        _refuse("Response missing both 'result' and 'error'", response)
    _check_id(response, task_id)
    return read_tolerantly(result)


def _check_version(response: JsonObject) -> None:
    if "jsonrpc" not in response:
        _refuse(
            "Response missing 'jsonrpc' field",
            response,
            fix=_SIMPLE_A2A if "status" in response and "task_id" in response else _REQUIRED_FIELDS,
        )
    version = response["jsonrpc"]
    if version != VERSION:
        said = version if isinstance(version, str) else encode(version).decode()
        _refuse(f"Unsupported JSON-RPC version: {said}", response, fix="The version is the string '2.0'.")


def _check_id(response: JsonObject, task_id: str) -> None:
    got = response.get("id")
    if got is None:
        _refuse("Response missing 'id' field", response)
    if got != task_id:
        _refuse_id(got, task_id, response)


def _id_notes(response: JsonObject, task_id: str) -> list[str]:
    got = response.get("id")
    if got is None:
        return ["The error has no 'id'; it is taken for this task's"]
    if got != task_id:
        return [
            f"Response ID mismatch: expected {task_id}, got {_shown(got)}; the error is taken for this task's"
        ]
    return []


def _read_error(error: Json, notes: list[str]) -> RpcError:
    if not isinstance(error, dict):
        notes.append("'error' should be an object with 'code' and 'message'")
        return RpcError(code=None, message=_shown(error), notes=notes)
    message = error.get("message")
    return RpcError(
        code=error.get("code"),
        message=message if isinstance(message, str) else _shown(message),
        data=error.get("data"),
        notes=notes,
    )


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _refuse(message: str, response: object, fix: str = _REQUIRED_FIELDS) -> NoReturn:
    raise ProtocolTranslationError(message, PROTOCOL, "response", response, fix=fix)


def _refuse_id(got: Json, task_id: str, response: object) -> NoReturn:
    raise ProtocolTranslationError(
        f"Response ID mismatch: expected {task_id}, got {_shown(got)}",
        PROTOCOL,
        "response",
        response,
        code="agent_response_id_mismatch",
    )
