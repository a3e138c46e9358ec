"""
What is sent to an A2A 1.0 agent; the same in both bindings.

    {"message": {"messageId": "msg-<task id>", "contextId": "…", "taskId": "…", "role": "ROLE_USER",
                 "parts": [{"text": "…"}], "metadata": {…}},
     "configuration": {"acceptedOutputModes": […], "returnImmediately": true,
                       "taskPushNotificationConfig": {"url", "token"}}}

The text is the input's `text`, else its `query`, else a string as it is, else the whole input as JSON. When
one field of the input is the text, the whole input travels in the message's `metadata`, so nothing is lost. An
input with a list `parts` says itself what the parts are.

A step with `message: caller` sends the message that started the run: its id, parts and metadata.

A task that belongs to no context yet gets one that is derived from its id: an agent that lists its tasks can
then be asked for the one that has our message.
"""

from __future__ import annotations

from typing import Literal, assert_never
from uuid import UUID, uuid5

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask, CallerMessage
from trunkline.protocols.outcomes import SendOptions
from trunkline.protocols.parts import (
    DataPart,
    FilePart,
    MessagePart,
    TextPart,
    fields_other_than_parts,
    parts_in,
    read_parts,
)

InputMode = Literal["text", "json", "data"]

# Of all contexts that are derived from task ids; another one would make them others' contexts.
_CONTEXTS = UUID("5b1f1a60-7c1e-4d53-9f0e-3a6b2f0c9d11")
_REPLY_FIELDS = frozenset({"text", "data", "parts", "function_response"})
_FUNCTION_RESPONSE_FIELDS = frozenset({"id", "name", "response"})
_TEXT_FIELDS = ("text", "query")
# The last takes everything else.
_OUTPUT_MODES: tuple[Json, ...] = ("text/plain", "application/json", "*/*")


def message_id(task: AgentTask) -> str:
    return f"msg-{task.task_id}" if task.message is None else task.message.message_id


def has_own_context(task: AgentTask) -> bool:
    """True for a task whose context holds nothing but this task: we have made it up."""
    return task.context_id is None and task.remote_task_id is None


def context_id(task: AgentTask) -> str | None:
    """The context of a task; None when only the agent knows it."""
    return str(uuid5(_CONTEXTS, task.task_id)) if has_own_context(task) else task.context_id


def message_params(task: AgentTask, input_mode: InputMode, options: SendOptions, protocol: str) -> JsonObject:
    message: JsonObject = {"messageId": message_id(task)}
    context = context_id(task)
    if context is not None:
        message["contextId"] = context
    if task.remote_task_id is not None:
        message["taskId"] = task.remote_task_id
    message["role"] = "ROLE_USER"
    if task.message is not None:
        message |= _forwarded(task.message)
    else:
        message["parts"], metadata = _content(task, input_mode, protocol)
        if metadata:
            message["metadata"] = metadata
    params: JsonObject = {"message": message}
    configuration = _configuration(options)
    if configuration:
        params["configuration"] = configuration
    return params


def _forwarded(given: CallerMessage) -> JsonObject:
    """What a caller's message says, unchanged: its parts have the form of 1.0."""
    lists = {"extensions": given.extensions, "referenceTaskIds": given.reference_task_ids}
    message: JsonObject = {"parts": list(given.parts)}
    if given.metadata:
        message["metadata"] = given.metadata
    return {**message, **{name: [*values] for name, values in lists.items() if values}}


def _configuration(options: SendOptions) -> JsonObject:
    wanted: JsonObject = {}
    # An agent that rings need not be waited for.
    if options.return_immediately or options.push is not None:
        wanted["returnImmediately"] = True
    if options.push is not None:
        wanted["taskPushNotificationConfig"] = {"url": options.push.url, "token": options.push.token}
    modes: JsonObject = {"acceptedOutputModes": list(_OUTPUT_MODES)}
    return modes | wanted if wanted else {}


def _content(task: AgentTask, input_mode: InputMode, protocol: str) -> tuple[list[Json], JsonObject]:
    """The message's parts and its metadata."""
    data = task.input_data
    if task.remote_task_id is not None and _is_reply(data):
        return _reply_parts(data, protocol), {}
    if input_mode != "text":
        return [_data_part(data) if input_mode == "data" else _text_part(data)], {}
    listed = parts_in(data)
    if listed is not None:
        return [_encode_part(part) for part in read_parts(listed, protocol)], fields_other_than_parts(data)
    field = _text_field(data)
    if field is None or not isinstance(data, dict):
        return [_text_part(data)], {}
    return [_text_part(field)], data


def _text_field(data: Json) -> Json:
    """The value that stands for the whole input, or None; an empty one says nothing."""
    if isinstance(data, dict):
        for name in _TEXT_FIELDS:
            if data.get(name):
                return data[name]
    return None


def _text_part(value: Json) -> JsonObject:
    return {"text": value if isinstance(value, str) else encode(value).decode()}


def _data_part(value: Json) -> JsonObject:
    # Some servers take a part whose data is null for one without content.
    return _text_part(value) if value is None else {"data": value}


def _is_reply(data: Json) -> bool:
    """Whether this is a person's answer, `{text?, data?, parts?, function_response?}`."""
    return isinstance(data, dict) and bool(data) and data.keys() <= _REPLY_FIELDS


def _reply_parts(data: Json, protocol: str) -> list[Json]:
    reply = data if isinstance(data, dict) else {}
    parts: list[Json] = []
    if reply.get("text") is not None:
        parts.append(_text_part(reply["text"]))
    responses = reply.get("function_response")
    values = [*(responses if isinstance(responses, list) else [responses]), reply.get("data")]
    parts.extend(_function_response(value) or _data_part(value) for value in values if value is not None)
    listed = parts_in(reply)
    if listed:
        parts.extend(_encode_part(part) for part in read_parts(listed, protocol))
    return parts or [_text_part("")]


def _function_response(value: Json) -> JsonObject | None:
    """The answer to a function that an agent of Google's ADK has called and waits for."""
    if not isinstance(value, dict) or value.keys() != _FUNCTION_RESPONSE_FIELDS:
        return None
    response = value["response"]
    # ADK takes an object only, and calls a plain value its result.
    answer: JsonObject = response if isinstance(response, dict) else {"result": response}
    data: JsonObject = {"id": value["id"], "name": value["name"], "response": answer}
    return {"data": data, "metadata": {"adk_type": "function_response"}}


def _encode_part(part: MessagePart) -> JsonObject:
    match part:
        case TextPart(text=text):
            written: JsonObject = {"text": text}
        case DataPart(data=data):
            written = _data_part(data)
        case FilePart(raw=raw, url=url):
            written = {"url": url} if raw is None else {"raw": raw}
        case _:
            assert_never(part)
    optional_fields: JsonObject = {
        "metadata": part.metadata,
        "filename": part.name,
        "mediaType": part.media_type,
    }
    return written | {name: value for name, value in optional_fields.items() if value is not None}
