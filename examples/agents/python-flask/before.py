"""
An agent that speaks Simple A2A, with Flask.

    request   {"task_id": "…", "input": {"query": "…"}}
    answer    {"task_id": "…", "status": "success", "output": {"result": "…"}, "error": null}
              {"task_id": "…", "status": "error", "output": null, "error": "…"}
"""

from __future__ import annotations

import os
from typing import Any

from flask import Flask, Response, jsonify, request
from processing import process_task
from werkzeug.exceptions import BadRequest, HTTPException

app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = 1_000_000


@app.post("/agent")
def handle_task() -> tuple[Response, int]:
    try:
        data = request.get_json()
    except (BadRequest, RecursionError):
        return failure(None, "The body is not JSON", 400)
    task_id = data.get("task_id") if isinstance(data, dict) else None
    if not isinstance(task_id, str):
        return failure(None, "task_id must be a string", 400)
    task_input = read_input(data.get("input"))
    if task_input is None:
        return failure(task_id, "input must be an object or a text", 400)
    try:
        output = process_task(task_input)
    except Exception as exc:
        app.logger.exception("Task %s has failed", task_id)
        return failure(task_id, str(exc), 500)
    return jsonify(task_id=task_id, status="success", output=output, error=None), 200


def read_input(given: Any) -> dict[str, Any] | None:
    if isinstance(given, str):
        return {"text": given}
    return given if isinstance(given, dict) else None


def failure(task_id: str | None, message: str, status: int) -> tuple[Response, int]:
    return jsonify(task_id=task_id, status="error", output=None, error=message), status


@app.errorhandler(413)
@app.errorhandler(415)
def refuse(error: HTTPException) -> tuple[Response, int]:
    """Requests that Flask itself rejects: a body that is too large, or a wrong content type."""
    return failure(None, error.description or error.name, error.code or 500)


if __name__ == "__main__":
    app.run(host=os.environ.get("HOST", "127.0.0.1"), port=int(os.environ.get("PORT", "8080")))
