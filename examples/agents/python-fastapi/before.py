"""
An agent that speaks Simple A2A, with FastAPI.

    request   {"task_id": "…", "input": {"query": "…"}}
    answer    {"task_id": "…", "status": "success", "output": {"result": "…"}, "error": null}
              {"task_id": "…", "status": "error", "output": null, "error": "…"}
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Annotated, Any

import uvicorn
from bodies import read_body
from fastapi import Depends, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from processing import process_task
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

app = FastAPI()
log = logging.getLogger("uvicorn.error")


class Task(BaseModel):
    task_id: str
    input: Any = None


@app.post("/agent")
async def handle_task(body: Annotated[bytes, Depends(read_body)]) -> JSONResponse:
    try:
        task = Task.model_validate_json(body)
    except ValidationError as exc:
        return failure(None, f"{exc.errors()[0]['msg']}: a task has a task_id and an input", 400)
    task_input = {"text": task.input} if isinstance(task.input, str) else task.input
    if not isinstance(task_input, dict):
        return failure(task.task_id, "input must be an object or a text", 400)
    try:
        # In a thread, so that the server can accept other requests in the meantime.
        output = await run_in_threadpool(process_task, task_input)
    except Exception as exc:
        log.exception("Task %s has failed", task.task_id)
        return failure(task.task_id, str(exc), 500)
    return JSONResponse({"task_id": task.task_id, "status": "success", "output": output, "error": None})


def failure(
    task_id: str | None, message: str, status: int, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    return JSONResponse(
        {"task_id": task_id, "status": "error", "output": None, "error": message}, status, headers
    )


@app.exception_handler(HTTPException)
async def refuse(_: Request, error: HTTPException) -> JSONResponse:
    """Requests that FastAPI rejects: a wrong content type (415), a body that is too large (413), a GET (405)."""
    return failure(None, error.detail, error.status_code, error.headers)


if __name__ == "__main__":
    uvicorn.run(app, host=os.environ.get("HOST", "127.0.0.1"), port=int(os.environ.get("PORT", "8080")))
