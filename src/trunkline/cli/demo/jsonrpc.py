"""
The JSON-RPC 2.0 shapes that two of the demo agents speak.

    request   {"jsonrpc": "2.0", "id": "…", "method": "message/send",
               "params": {"message": {"role": "user", "messageId": "…",
                                      "parts": [{"kind": "text", "text": "…"}]}}}
    answer    {"jsonrpc": "2.0", "id": "…",
               "result": {"kind": "task", "id": "…", "status": {"state": "completed"},
                          "artifacts": [{"parts": [{"kind": "text", "text": "…"}]}]}}
    error     {"jsonrpc": "2.0", "id": "…", "error": {"code": -32601, "message": "Method not found: …"}}
"""

from __future__ import annotations

from typing import cast

from trunkline.cli.demo.agent_server import DemoReply, DemoRequest


def text_of(request: DemoRequest) -> str:
    """The text of the message's first part; raises `ValueError` when there is none."""
    try:
        params = cast("dict[str, dict[str, list[dict[str, object]]]]", request["params"])
        return str(params["message"]["parts"][0]["text"])
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError("params.message.parts must hold a text") from error


def task(task_id: str, state: str, text: str | None = None) -> dict[str, object]:
    artifacts = [] if text is None else [{"artifactId": "answer", "parts": [{"kind": "text", "text": text}]}]
    return {"kind": "task", "id": task_id, "status": {"state": state}, "artifacts": artifacts}


def result(request: DemoRequest, value: dict[str, object]) -> DemoReply:
    return DemoReply(200, {"jsonrpc": "2.0", "id": request.get("id"), "result": value})


def error(request: DemoRequest, code: int, message: str) -> DemoReply:
    body = {"jsonrpc": "2.0", "id": request.get("id"), "error": {"code": code, "message": message}}
    return DemoReply(200, body)
