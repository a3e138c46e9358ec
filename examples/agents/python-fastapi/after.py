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
import logging
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import uvicorn
from bodies import read_body
from fastapi import Depends, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from processing import process_task
from pydantic import (
    BaseModel,
    Field,
    FiniteFloat,
    Strict,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import from_json
from starlette.exceptions import HTTPException

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

app = FastAPI()
log = logging.getLogger("uvicorn.error")

CallId = StrictStr | StrictInt | Annotated[FiniteFloat, Strict()] | None


class Call(BaseModel):
    jsonrpc: Literal["2.0"]
    id: CallId
    method: str
    params: Any = None


class Message(BaseModel):
    parts: Annotated[list[Any], Field(min_length=1)]
    metadata: Any = None


class Params(BaseModel):
    message: Message


class TextPart(BaseModel):
    kind: Literal["text"]
    text: str


class DataPart(BaseModel):
    kind: Literal["data"]
    data: dict[str, Any]


Part = TextPart | DataPart

call_ids: TypeAdapter[CallId] = TypeAdapter(CallId)
parts: TypeAdapter[Part] = TypeAdapter(Annotated[Part, Field(discriminator="kind")])


class Refusal(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@app.post("/agent")
async def handle_jsonrpc(body: Annotated[bytes, Depends(read_body)]) -> JSONResponse:
    call_id: CallId = None
    try:
        data = read_json(body)
        call_id = id_of(data)
        part, task_input = read_message(read_params(data))
        # In a thread, so that the server can accept other requests in the meantime.
        output = await run_in_threadpool(process_task, task_input)
        return JSONResponse({"jsonrpc": "2.0", "id": call_id, "result": completed(part, output)})
    except Refusal as exc:
        return failure(call_id, exc.code, str(exc), 400)
    except Exception as exc:
        log.exception("Task %s has failed", call_id)
        return failure(call_id, INTERNAL_ERROR, f"Internal error: {exc}", 500)


def read_json(body: bytes) -> Any:
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as exc:
        raise Refusal(PARSE_ERROR, f"Parse error: {exc}") from exc


def id_of(data: Any) -> CallId:
    """The id for the response, even if the request is invalid in another way."""
    try:
        return call_ids.validate_python(data.get("id") if isinstance(data, dict) else None)
    except ValidationError:
        return None


def read_params(data: Any) -> Any:
    try:
        call = Call.model_validate(data)
    except ValidationError as exc:
        raise Refusal(INVALID_REQUEST, f"Invalid Request: {first_of(exc)}") from exc
    if call.method != "message/send":
        raise Refusal(METHOD_NOT_FOUND, f"Method not found: {call.method}")
    return call.params


def read_message(params: Any) -> tuple[Part, dict[str, Any]]:
    """The message's first part, and the input of the task."""
    try:
        message = Params.model_validate(params).message
        part = parts.validate_python(message.parts[0])
    except ValidationError as exc:
        raise Refusal(INVALID_PARAMS, f"Invalid params: {first_of(exc)}") from exc
    return part, part.data if isinstance(part, DataPart) else input_of_text(part.text, message.metadata)


def first_of(error: ValidationError) -> str:
    """The first error, with its location."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the value'}: {first['msg']}"


def input_of_text(text: str, metadata: Any) -> dict[str, Any]:
    # Trunkline sends an input's `text` or `query` as the text, and the whole input as metadata.
    if isinstance(metadata, dict) and ("text" in metadata or "query" in metadata):
        return metadata
    try:
        found = from_json(text)
    except ValueError:
        return {"text": text}
    return found if isinstance(found, dict) else {"text": text}


def completed(part: Part, output: dict[str, Any]) -> dict[str, Any]:
    answer = {"kind": "text", "text": json.dumps(output)}
    return {
        "status": {"state": "completed"},
        "artifacts": [{"parts": [answer]}],
        "history": [{"role": "user", "parts": [part.model_dump()]}, {"role": "agent", "parts": [answer]}],
    }


def failure(
    call_id: CallId, code: int, message: str, status: int, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    return JSONResponse(
        {"jsonrpc": "2.0", "id": call_id, "error": {"code": code, "message": message}}, status, headers
    )


@app.exception_handler(HTTPException)
async def refuse(_: Request, error: HTTPException) -> JSONResponse:
    """Requests that FastAPI rejects: a wrong content type (415), a body that is too large (413), a GET (405)."""
    return failure(
        None, INVALID_REQUEST, f"Invalid Request: {error.detail}", error.status_code, error.headers
    )


if __name__ == "__main__":
    uvicorn.run(app, host=os.environ.get("HOST", "127.0.0.1"), port=int(os.environ.get("PORT", "8080")))
