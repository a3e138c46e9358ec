"""JSON-RPC 2.0: a request opened, and answers that have its id."""

from __future__ import annotations

import msgspec

from trunkline.agent.refusals import INVALID_REQUEST, Refusal, invalid_params
from trunkline.agent.values import Json, JsonObject, encode, kind_of

VERSION = "2.0"


class Call(msgspec.Struct, frozen=True, kw_only=True):
    id: Json
    method: str
    params: JsonObject


def id_of(body: Json) -> Json:
    """The id to answer with, also of a request that is wrong otherwise."""
    found = body.get("id") if isinstance(body, dict) else None
    return found if isinstance(found, str | int | float) and not isinstance(found, bool) else None


def read_call(body: Json) -> Call:
    if not isinstance(body, dict):
        raise _invalid(f"a request is an object, not {kind_of(body)}")
    if body.get("jsonrpc") != VERSION:
        raise _invalid('jsonrpc must be "2.0"')
    if "id" not in body:
        raise _invalid("id is missing: without it the answer would belong to nobody")
    if body["id"] != id_of(body):
        raise _invalid(f"id is {kind_of(body['id'])}, and must be a string or a number")
    method = body.get("method")
    if not isinstance(method, str) or not method:
        raise _invalid("method must be a string that is not empty")
    params = body.get("params", {})
    if not isinstance(params, dict):
        raise invalid_params(f"params is {kind_of(params)}, not an object")
    return Call(id=body["id"], method=method, params=params)


def result(call_id: Json, value: Json) -> JsonObject:
    return {"jsonrpc": VERSION, "id": call_id, "result": value}


def error(call_id: Json, refused: Refusal, data: Json = None) -> JsonObject:
    told: JsonObject = {"code": refused.code, "message": refused.message}
    if data is not None:
        told["data"] = data
    return {"jsonrpc": VERSION, "id": call_id, "error": told}


def event(call_id: Json, value: Json) -> bytes:
    """One event of a stream."""
    return b"data: " + encode(result(call_id, value)) + b"\n\n"


def _invalid(message: str) -> Refusal:
    return Refusal(INVALID_REQUEST, f"Invalid Request: {message}")
