"""
The same agent in JSON-RPC 2.0.

    request   {"jsonrpc": "2.0", "id": …, "method": "message/send", "params": {"message": {"role": "user",
                  "messageId": "…", "parts": [{"kind": "text", "text": "…"}], "metadata": {…}}}}
    answer    {"jsonrpc": "2.0", "id": …, "result": {"status": {"state": "completed"},
                  "artifacts": […], "history": […]}}
              {"jsonrpc": "2.0", "id": …, "error": {"code": …, "message": "…"}}

The first part of the message is the input.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any

from flask import Flask, Response, jsonify, request
from processing import process_task
from werkzeug.exceptions import RequestEntityTooLarge

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = 1_000_000


class Refusal(Exception):
    def __init__(self, code: int, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


@app.post("/agent")
def handle_jsonrpc() -> tuple[Response, int]:
    call_id = None
    try:
        call = read_json()
        call_id = id_of(call)
        part, task_input = read_message(read_params(call))
        output = process_task(task_input)
        return jsonify(jsonrpc="2.0", id=call_id, result=completed(part, output)), 200
    except Refusal as exc:
        return failure(call_id, exc.code, str(exc), exc.status)
    except Exception as exc:
        app.logger.exception("Task %s has failed", call_id)
        return failure(call_id, INTERNAL_ERROR, f"Internal error: {exc}", 500)


def read_json() -> Any:
    if request.mimetype != "application/json":
        raise Refusal(INVALID_REQUEST, "Invalid Request: Content-Type must be application/json", 415)
    try:
        return json.loads(request.get_data().decode(), parse_float=finite, parse_constant=finite)
    except RequestEntityTooLarge as exc:
        raise Refusal(INVALID_REQUEST, "Invalid Request: the body is too large", 413) from exc
    except (ValueError, RecursionError) as exc:
        raise Refusal(PARSE_ERROR, f"Parse error: {exc}") from exc


def finite(number: str) -> float:
    """Rejects NaN and Infinity, which Python reads but JSON does not allow."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is not a JSON number")
    return value


def id_of(call: Any) -> str | int | float | None:
    """The id for the response, even if the request is invalid in another way."""
    found = call.get("id") if isinstance(call, dict) else None
    return found if isinstance(found, str | int | float) and not isinstance(found, bool) else None


def read_params(call: Any) -> Any:
    if not isinstance(call, dict):
        raise Refusal(INVALID_REQUEST, "Invalid Request: the body must be one object")
    if call.get("jsonrpc") != "2.0":
        raise Refusal(INVALID_REQUEST, "Invalid Request: jsonrpc must be 2.0")
    if "id" not in call or call["id"] != id_of(call):
        raise Refusal(INVALID_REQUEST, "Invalid Request: id must be a string, a number or null")
    method = call.get("method")
    if not isinstance(method, str):
        raise Refusal(INVALID_REQUEST, "Invalid Request: method must be a string")
    if method != "message/send":
        raise Refusal(METHOD_NOT_FOUND, f"Method not found: {method}")
    return call.get("params")


def read_message(params: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The message's first part, and the input of the task."""
    message = params.get("message") if isinstance(params, dict) else None
    if not isinstance(message, dict):
        raise Refusal(INVALID_PARAMS, "Invalid params: params.message must be an object")
    parts = message.get("parts")
    if not isinstance(parts, list) or not parts or not isinstance(parts[0], dict):
        raise Refusal(INVALID_PARAMS, "Invalid params: params.message.parts must contain an object")
    match parts[0]:
        case {"kind": "text", "text": str(text)}:
            return parts[0], input_of_text(text, message.get("metadata"))
        case {"kind": "data", "data": dict(data)}:
            return parts[0], data
        case _:
            raise Refusal(INVALID_PARAMS, "Invalid params: a part must have text, or data that is an object")


def input_of_text(text: str, metadata: Any) -> dict[str, Any]:
    # Trunkline sends an input's `text` or `query` as the text, and the whole input as metadata.
    if isinstance(metadata, dict) and ("text" in metadata or "query" in metadata):
        return metadata
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {"text": text}
    return found if isinstance(found, dict) else {"text": text}


def completed(part: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    answer = {"kind": "text", "text": json.dumps(output)}
    return {
        "status": {"state": "completed"},
        "artifacts": [{"parts": [answer]}],
        "history": [{"role": "user", "parts": [part]}, {"role": "agent", "parts": [answer]}],
    }


def failure(call_id: str | float | None, code: int, message: str, status: int) -> tuple[Response, int]:
    return jsonify(jsonrpc="2.0", id=call_id, error={"code": code, "message": message}), status


if __name__ == "__main__":
    app.run(host=os.environ.get("HOST", "127.0.0.1"), port=int(os.environ.get("PORT", "8080")))
