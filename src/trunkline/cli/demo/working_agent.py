"""
The Statistician: an agent that needs a while.

It answers `message/send` with a task that is `working`, and `tasks/get` with how far it is. No connection
stays open meanwhile, and a restart of Trunkline loses nothing: it asks again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import cast

from trunkline.cli.demo.agent_server import (
    DemoReply,
    DemoRequest,
    rpc_error,
    rpc_result,
    serve,
    task_result,
    text_of,
)

WORK_SECONDS = 2.0

# Task id -> what was asked, and when it will be done.
_tasks: dict[str, tuple[str, float]] = {}


def answer(request: DemoRequest, headers: Mapping[str, str]) -> DemoReply:
    del headers
    match request.get("method"):
        case "message/send":
            return _begin(request)
        case "tasks/get":
            return _look(request)
        case method:
            return rpc_error(request, -32601, f"Method not found: {method}")


def _begin(request: DemoRequest) -> DemoReply:
    try:
        question = text_of(request)
    except ValueError as error:
        return rpc_error(request, -32602, f"Invalid params: {error}")
    task_id = f"figures-{request.get('id')}"
    # The same message sent again is the same task, not a second one.
    _tasks.setdefault(task_id, (question, time.monotonic() + WORK_SECONDS))
    return rpc_result(request, task_result(task_id, "working"))


def _look(request: DemoRequest) -> DemoReply:
    params = request.get("params")
    task_id = str(cast("Mapping[str, object]", params).get("id")) if isinstance(params, dict) else ""
    if task_id not in _tasks:
        return rpc_error(request, -32001, f"Task not found: {task_id}")
    question, done_at = _tasks[task_id]
    if time.monotonic() < done_at:
        return rpc_result(request, task_result(task_id, "working"))
    text = f"{len(question)} characters were asked about, 42 per cent of them twice."
    return rpc_result(request, task_result(task_id, "completed", text))


if __name__ == "__main__":
    serve(answer)
