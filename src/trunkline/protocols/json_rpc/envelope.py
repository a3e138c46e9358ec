"""
The JSON-RPC 2.0 envelope, for every dialect that travels in one.

    request  {"jsonrpc": "2.0", "id": "<task id>", "method": "…", "params": …}
    answer   {"jsonrpc": "2.0", "id": "<task id>", "result": …}
             {"jsonrpc": "2.0", "id": "<task id>", "error": {"code": -32603, "message": "…", "data": …}}

A result without `id` is malformed, one with another `id` is not ours. An error may lack its `id`: that is
noted and the error taken. `"error": null` next to a result is ignored, and so is the reverse.

`ExactAnswerReader(T)` reads an answer whose result is exactly a `T` in one go, and hands every other one over as
plain JSON. What a result or an error's code means is for the dialect to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Generic, Literal, NoReturn, TypeVar

import msgspec
from msgspec import Raw

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols.answer_json import JsonReader, NotJson, json_kind, parse
from trunkline.protocols.outcomes import Failed, ProtocolTranslationError, step_error

VERSION = "2.0"

_REQUIRED_FIELDS = (
    "Change the agent to always respond with 'jsonrpc': '2.0', the request's 'id', and 'result' or 'error'."
)
_SIMPLE_A2A = (
    "The agent responds in Simple A2A. Register it with the protocol simple-a2a, or update the agent."
)

T = TypeVar("T")


class RpcResult(msgspec.Struct, kw_only=True):
    value: Json


class RpcError(msgspec.Struct, kw_only=True):
    """What an agent says in `error`."""

    code: Json
    message: str
    data: Json = None
    notes: list[str] = []


class _ExactRpcResponse(msgspec.Struct, Generic[T]):
    jsonrpc: Literal["2.0"]
    id: str
    result: T
    error: None = None


class _RawRpcResult(msgspec.Struct):
    result: Raw


_raw_results = msgspec.json.Decoder(_RawRpcResult)


def rpc_request(method: str, task_id: str, params: Json) -> JsonObject:
    return {"jsonrpc": VERSION, "id": task_id, "method": method, "params": params}


def raw_result(body: bytes) -> Raw:
    """The result of an answer that has been opened, as the bytes it came in."""
    return _raw_results.decode(body.removeprefix(b"\xef\xbb\xbf")).result


class ExactAnswerReader(Generic[T]):
    """Opens answers whose result is, in the exact form of the dialect, a `T`."""

    def __init__(self, type_: type[T]) -> None:
        self._exact: JsonReader[_ExactRpcResponse[T]] = JsonReader(_ExactRpcResponse[type_])

    def read(self, body: bytes, task_id: str, protocol: str) -> T | None:
        """The result; None when the answer needs a closer look: `open_envelope`."""
        try:
            answer = self._exact.read(body)
        except msgspec.ValidationError:
            return None
        if answer.id != task_id:
            _refuse_id(answer.id, task_id, body, protocol)
        return answer.result


def parse_response(body: bytes, task_id: str, protocol: str) -> RpcResult | RpcError:
    """What the answer has in it; raises `NotJson` or `ProtocolTranslationError`."""
    response = parse(body)
    if not isinstance(response, dict):
        raise NotJson(f"The answer is {json_kind(response)}, not an object")
    _check_version(response, protocol)
    error = response.get("error")
    result = response.get("result")
    if error is not None and result is not None:
        _refuse("Response has both 'result' and 'error'", response, protocol)
    if error is not None:
        return _read_error(error, _id_notes(response, task_id))
    if "result" not in response or (result is None and "error" in response):
        _refuse("Response missing both 'result' and 'error'", response, protocol)
    _check_id(response, task_id, protocol)
    return RpcResult(value=result)


def failed_by_rpc_error(
    error: RpcError, fixes: Mapping[int, str], other_dialect: Set[int], unknown_task: int | None = None
) -> Failed:
    """
    What the error means, with a dialect's words for its codes and those that prove another dialect.

    `unknown_task` is the code by which an agent of the dialect says that it does not know a task. The JavaScript SDK
    loses that code where it is loaded as CommonJS, and keeps the words.
    """
    code = _integer(error.code)
    words = "unknown" if error.code is None else encode(error.code).decode()
    return Failed(
        error=step_error(
            "agent_jsonrpc_error",
            f"JSON-RPC Error {words if code is None else code}: {error.message}",
            fix=fixes.get(code, "") if code is not None else "",
            jsonrpc_code=code,
            detail=error.data,
        ),
        warnings=tuple(error.notes),
        other_dialect=code in other_dialect,
        task_unknown=unknown_task is not None
        and (code == unknown_task or (code == -32603 and error.message.startswith("Task not found"))),
    )


def _check_version(response: JsonObject, protocol: str) -> None:
    if "jsonrpc" not in response:
        _refuse(
            "Response missing 'jsonrpc' field",
            response,
            protocol,
            fix=_SIMPLE_A2A if "status" in response and "task_id" in response else _REQUIRED_FIELDS,
        )
    version = response["jsonrpc"]
    if version != VERSION:
        message = f"Unsupported JSON-RPC version: {_shown(version)}"
        _refuse(message, response, protocol, fix="Use the string '2.0' as the version.")


def _check_id(response: JsonObject, task_id: str, protocol: str) -> None:
    got = response.get("id")
    if got is None:
        _refuse("Response missing 'id' field", response, protocol)
    if got != task_id:
        _refuse_id(got, task_id, response, protocol)


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


def _integer(value: Json) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def _refuse(message: str, response: object, protocol: str, fix: str = _REQUIRED_FIELDS) -> NoReturn:
    raise ProtocolTranslationError(message, protocol, "response", response, fix=fix)


def _refuse_id(got: Json, task_id: str, response: object, protocol: str) -> NoReturn:
    raise ProtocolTranslationError(
        f"Response ID mismatch: expected {task_id}, got {_shown(got)}",
        protocol,
        "response",
        response,
        code="agent_response_id_mismatch",
    )
