"""
What is sent to an A2A 0.2 or 0.3 agent.

    {"jsonrpc": "2.0", "id": "<task id>", "method": "message/send" | "message/stream", "params": {
        "message": {"kind": "message", "role": "user", "messageId": "msg-<task id>",
                    "taskId": "…", "contextId": "…",
                    "parts": [{"kind": "text", "text": "…"}], "metadata": {…}},
        "configuration": {"acceptedOutputModes": […], "blocking": true,
                          "pushNotificationConfig": {"url", "token"}}}}
    {"jsonrpc": "2.0", "id": "<task id>", "method": "tasks/get" | "tasks/cancel" | "tasks/resubscribe",
     "params": {"id": "…"}}

The text is the input's `text`, else its `query`, else a string as it is, else the whole input as JSON. When
one field of the input is the text, the whole input travels in the message's `metadata`, so nothing is lost. An
input with a list `parts` says itself what the parts are. A step with `message: caller` sends the message that started
the run: its id, parts and metadata.
"""

from __future__ import annotations

from typing import Literal

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask, CallerMessage
from trunkline.protocols.a2a.v03.parts import encode_parts, is_reply, reply_parts, text_part
from trunkline.protocols.json_rpc.envelope import rpc_request
from trunkline.protocols.outcomes import AgentRequest, SendOptions
from trunkline.protocols.parts import fields_other_than_parts, parts_in

InputMode = Literal["text", "json", "data"]
ParamsMode = Literal["message", "input"]

_TEXT_FIELDS = ("text", "query")
# One server answers 500 to a configuration without them. The last takes everything else.
_OUTPUT_MODES: tuple[Json, ...] = ("text/plain", "application/json", "*/*")


def message_params(task: AgentTask, input_mode: InputMode, protocol: str) -> JsonObject:
    message: JsonObject = {"kind": "message", "role": "user", "messageId": f"msg-{task.task_id}"}
    if task.remote_task_id is not None:
        message["taskId"] = task.remote_task_id
    if task.context_id is not None:
        message["contextId"] = task.context_id
    data = task.input_data
    listed = parts_in(data) if input_mode == "text" else None
    if task.message is not None:
        message |= _forwarded(task.message, protocol)
    elif task.remote_task_id is not None and is_reply(data):
        message["parts"] = reply_parts(data, protocol)
    elif listed is not None:
        message["parts"] = encode_parts(listed, protocol)
        if other_fields := fields_other_than_parts(data):
            message["metadata"] = other_fields
    else:
        message["parts"] = input_parts(data, input_mode)
        if input_mode == "text" and _text_field(data) is not None:
            message["metadata"] = data
    return {"message": message}


def _forwarded(given: CallerMessage, protocol: str) -> JsonObject:
    """What a caller's message says, in the form of 0.3."""
    lists = {"extensions": given.extensions, "referenceTaskIds": given.reference_task_ids}
    message: JsonObject = {
        "messageId": given.message_id,
        "parts": encode_parts(list(given.parts), protocol),
    }
    if given.metadata:
        message["metadata"] = given.metadata
    return {**message, **{name: [*values] for name, values in lists.items() if values}}


def configuration(options: SendOptions) -> JsonObject:
    wanted: JsonObject = {
        "acceptedOutputModes": list(_OUTPUT_MODES),
        "blocking": options.push is None and not options.return_immediately,
    }
    if options.push is not None:
        wanted["pushNotificationConfig"] = {"url": options.push.url, "token": options.push.token}
    return wanted


def input_params(task: AgentTask) -> Json:
    """The input itself; what JSON-RPC does not take as params is put into an object."""
    data = task.input_data
    return data if isinstance(data, dict | list) else {"input": data}


def input_parts(data: Json, mode: InputMode) -> list[Json]:
    if mode == "data" and isinstance(data, dict):
        return [{"kind": "data", "data": data}]
    field = _text_field(data) if mode == "text" else None
    return [text_part(data if field is None else field)]


def task_call(method: str, task: AgentTask, remote_task_id: str) -> AgentRequest:
    return AgentRequest(body=encode(rpc_request(method, task.task_id, {"id": remote_task_id})))


def _text_field(data: Json) -> Json:
    """The value that stands for the whole input, or None; an empty one says nothing."""
    if isinstance(data, dict):
        for name in _TEXT_FIELDS:
            if data.get(name):
                return data[name]
    return None
