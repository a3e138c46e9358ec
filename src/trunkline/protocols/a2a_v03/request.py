"""
What is sent to an A2A 0.2 or 0.3 agent.

    {"jsonrpc": "2.0", "id": "<task id>", "method": "message/send", "params": {"message": {
        "kind": "message", "role": "user", "messageId": "msg-<task id>", "contextId": "…", "taskId": "…",
        "parts": [{"kind": "text", "text": "…"}], "metadata": {…}}}}
    {"jsonrpc": "2.0", "id": "<task id>", "method": "tasks/get" | "tasks/cancel", "params": {"id": "…"}}

The text is the input's `text`, else its `query`, else a string as it is, else the whole input as JSON. When
one field of the input is the text, the whole input travels in the message's `metadata`, so nothing is lost.
"""

from __future__ import annotations

from typing import Literal

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask

InputMode = Literal["text", "json", "data"]
ParamsMode = Literal["message", "input"]

_REPLY_FIELDS = frozenset({"text", "data", "parts"})
_TEXT_FIELDS = ("text", "query")
_PART_KINDS = ("text", "data", "file")


def message_params(task: AgentTask, input_mode: InputMode) -> JsonObject:
    message: JsonObject = {"kind": "message", "role": "user", "messageId": f"msg-{task.task_id}"}
    if task.remote_task_id is not None:
        message["taskId"] = task.remote_task_id
    if task.context_id is not None:
        message["contextId"] = task.context_id
    reply = task.remote_task_id is not None and _is_reply(task.input_data)
    message["parts"] = _reply_parts(task.input_data) if reply else input_parts(task.input_data, input_mode)
    if not reply and input_mode == "text" and _text_field(task.input_data) is not None:
        message["metadata"] = task.input_data
    return {"message": message}


def input_params(task: AgentTask) -> Json:
    """The input itself; what JSON-RPC does not take as params is put into an object."""
    data = task.input_data
    return data if isinstance(data, dict | list) else {"input": data}


def input_parts(data: Json, mode: InputMode) -> list[Json]:
    if mode == "data" and isinstance(data, dict):
        return [{"kind": "data", "data": data}]
    field = _text_field(data) if mode == "text" else None
    return [_text_part(data if field is None else field)]


def _text_field(data: Json) -> Json:
    """The value that stands for the whole input, or None; an empty one says nothing."""
    if isinstance(data, dict):
        for name in _TEXT_FIELDS:
            if data.get(name):
                return data[name]
    return None


def _text_part(value: Json) -> JsonObject:
    return {"kind": "text", "text": value if isinstance(value, str) else encode(value).decode()}


def _is_reply(data: Json) -> bool:
    return isinstance(data, dict) and bool(data) and data.keys() <= _REPLY_FIELDS


def _reply_parts(data: Json) -> list[Json]:
    """A person's answer `{text?, data?, parts?}` as parts."""
    reply = data if isinstance(data, dict) else {}
    parts: list[Json] = []
    if reply.get("text") is not None:
        parts.append(_text_part(reply["text"]))
    value = reply.get("data")
    if value is not None:
        # A data part of 0.3 holds an object.
        parts.append({"kind": "data", "data": value} if isinstance(value, dict) else _text_part(value))
    given = reply.get("parts")
    if isinstance(given, list):
        parts.extend(_with_kind(part) for part in given)
    return parts or [_text_part("")]


def _with_kind(part: Json) -> Json:
    if not isinstance(part, dict):
        return _text_part(part)
    if "kind" in part:
        return part
    kind = next((name for name in _PART_KINDS if name in part), "text")
    return {"kind": kind, **part}
