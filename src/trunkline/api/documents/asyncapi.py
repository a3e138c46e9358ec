"""
The AsyncAPI document: the Kafka topics, their producers and consumers, and the format of their records.

The schemas come from the structs that encode and decode the records, so the document cannot differ from the code.
"""

from __future__ import annotations

from typing import cast, get_args

import msgspec

from trunkline import __version__
from trunkline.jsontypes import Json, JsonObject
from trunkline.machine.events import Event
from trunkline.messages import AgentResult, AgentTask, CancelTask, TopicNames
from trunkline.messages.cloudevents import CONTENT_TYPE, TYPE_PREFIX, RunEvent
from trunkline.messages.codec import (
    REFERENCE_HEADER,
    TYPE_HEADER,
    VERSION,
    VERSION_HEADER,
    MessageType,
    ResultReference,
    TaskReference,
)
from trunkline.messages.commands import StartRun
from trunkline.messages.trace import TRACEPARENT, TRACESTATE

DESCRIPTION = """\
The Kafka messages that Trunkline sends and receives.

Delivery is at least once, and the order of records does not matter. Records that cannot be read become dead letters. A
message larger than 512 KiB is sent by reference: the record only identifies it, and the database has the content.
"""

_JSON = "application/json"
_STRUCTS = (AgentTask, CancelTask, TaskReference, AgentResult, ResultReference, RunEvent, StartRun)
_RUN_ID: JsonObject = {"type": "string", "description": "The run's id."}
# W3C Trace Context, if the caller that started the run sent it or tracing is on.
_TRACE_HEADERS: JsonObject = {name: {"type": "string"} for name in (TRACEPARENT, TRACESTATE)}
_COMMAND_KEY: JsonObject = {
    "type": "string",
    "description": (
        "Makes the command idempotent: each key starts one run. Without a key, each record starts one run."
    ),
}


def build_asyncapi(topics: TopicNames) -> JsonObject:
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Trunkline", "version": __version__, "description": DESCRIPTION},
        "defaultContentType": _JSON,
        "channels": _channels(topics),
        "operations": _operations(),
        "components": {"messages": _messages(), "schemas": _schemas()},
    }


def _channels(topics: TopicNames) -> JsonObject:
    defaults = TopicNames()
    of_pool = _channel(
        topics.tasks_of("{pool}"),
        "Tasks for the agents of one pool. Only bridges of this pool take them.",
        "AgentTask",
        "CancelTask",
        "TaskReference",
    )
    of_pool["parameters"] = {"pool": {"description": "The agent's `pool`."}}
    return {
        "tasks": _channel(
            topics.tasks,
            "Tasks for agents, from executors to bridges.",
            "AgentTask",
            "CancelTask",
            "TaskReference",
        ),
        "tasksOfPool": of_pool,
        "results": _channel(
            topics.results,
            "Results of tasks, from bridges to executors.",
            "AgentResult",
            "ResultReference",
        ),
        "events": _channel(
            topics.events or defaults.events,
            "All events of all runs as CloudEvents, for other systems. Disabled if `events_topic` is empty.",
            "RunEvent",
        ),
        "commands": _channel(
            topics.commands or defaults.commands,
            "Commands from other systems that start runs. Disabled unless `commands_topic` is set.",
            "StartRun",
        ),
    }


def _channel(address: str, description: str, *messages: str) -> JsonObject:
    return {
        "address": address,
        "description": description,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
    }


def _operations() -> JsonObject:
    return {
        "sendTasks": _operation("send", "tasks", "The executor dispatches a task."),
        "receiveTasks": _operation("receive", "tasks", "A bridge takes a task."),
        "sendTasksOfPool": _operation(
            "send", "tasksOfPool", "The executor dispatches a task for an agent of a pool."
        ),
        "receiveTasksOfPool": _operation("receive", "tasksOfPool", "A bridge of the pool takes a task."),
        "sendResults": _operation("send", "results", "A bridge reports the result of a task."),
        "receiveResults": _operation("receive", "results", "The executor receives the result of a task."),
        "sendEvents": _operation("send", "events", "A run has a new event."),
        "receiveCommands": _operation("receive", "commands", "A command starts a run."),
    }


def _operation(action: str, channel: str, summary: str) -> JsonObject:
    return {"action": action, "channel": {"$ref": f"#/channels/{channel}"}, "summary": summary}


def _messages() -> JsonObject:
    return {
        "AgentTask": _ours("AgentTask", "agent-task", "One task for an agent: one attempt of a step."),
        "CancelTask": _ours("CancelTask", "cancel-task", "Cancels a task."),
        "TaskReference": _ours(
            "TaskReference", "agent-task", "A large `AgentTask`, by reference.", by_reference=True
        ),
        "AgentResult": _ours("AgentResult", "agent-result", "The result of a task."),
        "ResultReference": _ours(
            "ResultReference", "agent-result", "A large `AgentResult`, by reference.", by_reference=True
        ),
        "RunEvent": _message(
            "RunEvent",
            "One event of one run: a CloudEvent 1.0 in structured mode.",
            key=_RUN_ID,
            content_type=CONTENT_TYPE.decode(),
            headers=_headers({"content-type": CONTENT_TYPE.decode()}),
        ),
        "StartRun": _message(
            "StartRun",
            "Starts a run of a saved workflow.",
            key=_COMMAND_KEY,
            # The headers are optional. Only an unsupported version is rejected.
            headers={
                "type": "object",
                "properties": {VERSION_HEADER: {"const": str(VERSION)}, **_TRACE_HEADERS},
            },
        ),
    }


def _ours(name: str, message_type: MessageType, summary: str, *, by_reference: bool = False) -> JsonObject:
    expected = {TYPE_HEADER: message_type, VERSION_HEADER: str(VERSION)}
    if by_reference:
        expected[REFERENCE_HEADER] = "1"
    headers = _headers(expected)
    if message_type == "agent-task":
        headers["properties"] = {**_properties(expected), **_TRACE_HEADERS}
    return _message(name, summary, key=_RUN_ID, headers=headers)


def _headers(expected: dict[str, str]) -> JsonObject:
    required: list[Json] = list(expected)
    return {"type": "object", "properties": _properties(expected), "required": required}


def _properties(expected: dict[str, str]) -> JsonObject:
    return {name: {"type": "string", "const": value} for name, value in expected.items()}


def _message(
    name: str, summary: str, *, key: JsonObject, headers: JsonObject, content_type: str = _JSON
) -> JsonObject:
    return {
        "name": name,
        "title": name,
        "summary": summary,
        "contentType": content_type,
        "headers": headers,
        "payload": {"$ref": f"#/components/schemas/{name}"},
        "bindings": {"kafka": {"key": key, "bindingVersion": "0.5.0"}},
    }


def _schemas() -> JsonObject:
    structs = [_describable(struct) for struct in _STRUCTS]
    _, components = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    return {**cast("JsonObject", components), "RunEvent": _run_event()}


def _run_event() -> JsonObject:
    """What CloudEvents and the runs' history say about it, beyond the types of its fields."""
    types: list[Json] = [TYPE_PREFIX + kind.__name__ for kind in get_args(Event)]
    more_by_field: JsonObject = {
        "type": {"enum": types},
        "time": {"format": "date-time"},
        "data": {"type": "object", "description": "The same as `data` of the event in the REST interface."},
        "workflow": {"description": "The workflow's name."},
        "sequence": {"description": "The number of the event in its run, as a string."},
    }
    properties: JsonObject = {}
    for field in msgspec.structs.fields(RunEvent):
        fixed: JsonObject = {} if field.default is msgspec.NODEFAULT else {"const": field.default}
        more = more_by_field.get(field.name, {})
        properties[field.name] = {"type": "string", **fixed, **(more if isinstance(more, dict) else {})}
    required: list[Json] = list(properties)
    return {
        "title": "RunEvent",
        "description": RunEvent.__doc__,
        "type": "object",
        "properties": properties,
        "required": required,
    }


def _describable(struct: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """The same struct, with null for a default that is raw JSON: the library cannot describe one."""
    fields = msgspec.structs.fields(struct)
    if not any(isinstance(field.default, msgspec.Raw) for field in fields):
        return struct
    return msgspec.defstruct(
        struct.__name__,
        [
            (field.name, msgspec.Raw, None) if isinstance(field.default, msgspec.Raw) else _as_declared(field)
            for field in fields
        ],
        namespace={"__doc__": struct.__doc__},
        kw_only=True,
    )


def _as_declared(field: msgspec.structs.FieldInfo) -> tuple[str, type] | tuple[str, type, object]:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.name, field.type, msgspec.field(default_factory=field.default_factory)
    if field.default is not msgspec.NODEFAULT:
        return field.name, field.type, field.default
    return field.name, field.type
