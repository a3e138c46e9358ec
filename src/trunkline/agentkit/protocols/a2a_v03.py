"""
A2A 0.2 and 0.3, as an agent speaks them.

    message/send     -> {"kind": "task", "id", "contextId", "status", "artifacts", "history"}
    message/stream   -> the task, then {"kind": "status-update", …, "final"} and {"kind": "artifact-update", …}

The history of a task that is done ends with its answer. `configuration.blocking: false` is answered at once. A
`historyLength` of 0 is none at all, so everything is sent. Data are objects: any other JSON goes out as `{"value": …}`,
marked as the A2A project's SDK marks it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from trunkline.agentkit.json_values import Json, JsonObject
from trunkline.agentkit.messages import Message
from trunkline.agentkit.parts import Data, File, Part, Text
from trunkline.agentkit.protocols.base import A2ADialect, Operation, flag_in, latest, length_in, timestamp
from trunkline.agentkit.task_execution import IDLE_STATES, TaskArtifact, TaskExecution, TaskStatus, TaskUpdate


class A2AV03(A2ADialect):
    operations: ClassVar[Mapping[str, Operation]] = {
        "message/send": "send",
        "message/stream": "stream",
        "tasks/get": "get",
        "tasks/cancel": "cancel",
        "tasks/resubscribe": "resubscribe",
        "tasks/pushNotificationConfig/set": "push",
        "tasks/pushNotificationConfig/get": "push",
        "tasks/pushNotificationConfig/list": "push",
        "tasks/pushNotificationConfig/delete": "push",
        "agent/getAuthenticatedExtendedCard": "extended_card",
    }
    streams_ended_tasks = True

    def is_blocking(self, configuration: JsonObject) -> bool:
        return flag_in(configuration, "blocking") is not False

    def history_length(self, fields: JsonObject) -> int | None:
        return length_in(fields) or None

    def task(self, execution: TaskExecution, history: int | None, *, artifacts: bool = True) -> JsonObject:
        task: JsonObject = {
            "kind": "task",
            "id": execution.id,
            "contextId": execution.context_id,
            "status": _status(execution.status),
            "history": [_message(message) for message in latest(_history(execution), history)],
        }
        if artifacts:
            task["artifacts"] = [_artifact(result) for result in execution.artifacts()]
        return task

    def send_result(self, task: JsonObject) -> JsonObject:
        return task

    def update(self, execution: TaskExecution, update: TaskUpdate) -> JsonObject:
        about: JsonObject = {"taskId": execution.id, "contextId": execution.context_id}
        if isinstance(update, TaskStatus):
            final = update.state in IDLE_STATES
            return {"kind": "status-update", **about, "status": _status(update), "final": final}
        return {
            "kind": "artifact-update",
            **about,
            "artifact": _artifact(update),
            "append": update.appends,
            "lastChunk": not update.is_partial,
        }

    def error_data(self, code: int) -> Json:
        del code
        return None


def _history(execution: TaskExecution) -> list[Message]:
    """With the answer, where there is one: callers of `message/send` may look for it there and not in the artifacts."""
    if execution.state != "completed":
        return execution.history
    return [message for message in map(_without_files, execution.transcript()) if message.parts]


def _without_files(message: Message) -> Message:
    # An agent's are in the artifacts, and may be long.
    if message.role == "user":
        return message
    parts = tuple(part for part in message.parts if not isinstance(part, File))
    return msgspec.structs.replace(message, parts=parts)


def _status(status: TaskStatus) -> JsonObject:
    fields: JsonObject = {"state": status.state, "timestamp": timestamp(status.at)}
    if status.message is not None:
        fields["message"] = _message(status.message)
    return fields


def _message(message: Message) -> JsonObject:
    fields: JsonObject = {
        "kind": "message",
        "role": message.role,
        "messageId": message.id,
        "taskId": message.task_id,
        "contextId": message.context_id,
        "parts": [_part(part) for part in message.parts],
    }
    if message.metadata is not None:
        fields["metadata"] = message.metadata
    return fields


def _artifact(result: TaskArtifact) -> JsonObject:
    fields: JsonObject = {
        "artifactId": result.id,
        "name": result.name,
        "parts": [_part(part) for part in result.parts],
    }
    if result.description is not None:
        fields["description"] = result.description
    return fields


def _part(part: Part) -> JsonObject:
    match part:
        case Text(text=text):
            return {"kind": "text", "text": text}
        case Data(data=data):
            if isinstance(data, dict):
                return {"kind": "data", "data": data}
            return {"kind": "data", "data": {"value": data}, "metadata": {"data_part_compat": True}}
        case File():
            return {"kind": "file", "file": _file(part)}


def _file(file: File) -> JsonObject:
    content: JsonObject = (
        {"uri": file.url} if file.content is None else {"bytes": base64.b64encode(file.content).decode()}
    )
    file_fields: JsonObject = {"mimeType": file.media_type, "name": file.name}
    return content | {name: value for name, value in file_fields.items() if value is not None}
