"""JSON-RPC 2.0: reads requests and writes responses with the id of their request."""

from __future__ import annotations

import msgspec

from trunkline.agentkit.errors import INVALID_REQUEST, RequestError, invalid_params
from trunkline.agentkit.json_values import Json, JsonObject, encode, kind_of

VERSION = "2.0"


class RpcRequest(msgspec.Struct, frozen=True, kw_only=True):
    id: Json
    method: str
    params: JsonObject


def id_of(body: Json) -> Json:
    """The id to respond with, also for an invalid request."""
    found = body.get("id") if isinstance(body, dict) else None
    return found if isinstance(found, str | int | float) and not isinstance(found, bool) else None


def read_request(body: Json) -> RpcRequest:
    if not isinstance(body, dict):
        raise _invalid(f"a request is an object, not {kind_of(body)}")
    if body.get("jsonrpc") != VERSION:
        raise _invalid('jsonrpc must be "2.0"')
    if "id" not in body:
        raise _invalid("id is missing: the answer needs it")
    if body["id"] != id_of(body):
        raise _invalid(f"id is {kind_of(body['id'])}, and must be a string or a number")
    method = body.get("method")
    if not isinstance(method, str) or not method:
        raise _invalid("method must be a non-empty string")
    params = body.get("params", {})
    if not isinstance(params, dict):
        raise invalid_params(f"params is {kind_of(params)}, not an object")
    return RpcRequest(id=body["id"], method=method, params=params)


def result(request_id: Json, value: Json) -> JsonObject:
    return {"jsonrpc": VERSION, "id": request_id, "result": value}


def error(request_id: Json, exc: RequestError, data: Json = None) -> JsonObject:
    fields: JsonObject = {"code": exc.code, "message": exc.message}
    if data is not None:
        fields["data"] = data
    return {"jsonrpc": VERSION, "id": request_id, "error": fields}


def event(request_id: Json, value: Json) -> bytes:
    """One event of a stream."""
    return b"data: " + encode(result(request_id, value)) + b"\n\n"


def _invalid(message: str) -> RequestError:
    return RequestError(INVALID_REQUEST, f"Invalid Request: {message}")
