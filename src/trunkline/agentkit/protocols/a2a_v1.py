"""
A2A 1.0, as an agent speaks it.

    SendMessage            -> {"task": {"id", "contextId", "status", "artifacts", "history"}}
    SendStreamingMessage   -> {"task"}, then {"statusUpdate"} and {"artifactUpdate"}; the close is the end
    GetTask, CancelTask    -> the task itself

`returnImmediately: true` is answered at once. A `historyLength` of 0 is none. Errors of A2A say their reason in words
that programs read, in addition to the code.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import ClassVar

from trunkline.agentkit import errors as refusals
from trunkline.agentkit.json_values import Json, JsonObject
from trunkline.agentkit.messages import Message
from trunkline.agentkit.parts import Data, File, Part, Text
from trunkline.agentkit.protocols.base import A2ADialect, Operation, flag_in, latest, length_in, timestamp
from trunkline.agentkit.task_execution import TaskArtifact, TaskExecution, TaskState, TaskStatus, TaskUpdate

STATES: dict[TaskState, str] = {
    "submitted": "TASK_STATE_SUBMITTED",
    "working": "TASK_STATE_WORKING",
    "input-required": "TASK_STATE_INPUT_REQUIRED",
    "completed": "TASK_STATE_COMPLETED",
    "canceled": "TASK_STATE_CANCELED",
    "failed": "TASK_STATE_FAILED",
    "rejected": "TASK_STATE_REJECTED",
}
_ROLES = {"user": "ROLE_USER", "agent": "ROLE_AGENT"}
_REASONS = {
    refusals.TASK_NOT_FOUND: "TASK_NOT_FOUND",
    refusals.NOT_CANCELABLE: "TASK_NOT_CANCELABLE",
    refusals.NO_PUSHES: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    refusals.UNSUPPORTED: "UNSUPPORTED_OPERATION",
    refusals.NO_EXTENDED_CARD: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    refusals.VERSION_NOT_SUPPORTED: "VERSION_NOT_SUPPORTED",
}


class A2AV1(A2ADialect):
    operations: ClassVar[Mapping[str, Operation]] = {
        "SendMessage": "send",
        "SendStreamingMessage": "stream",
        "GetTask": "get",
        "CancelTask": "cancel",
        "SubscribeToTask": "resubscribe",
        "ListTasks": "list",
        "CreateTaskPushNotificationConfig": "push",
        "GetTaskPushNotificationConfig": "push",
        "ListTaskPushNotificationConfigs": "push",
        "DeleteTaskPushNotificationConfig": "push",
        "GetExtendedAgentCard": "extended_card",
    }
    streams_ended_tasks = False

    def is_blocking(self, configuration: JsonObject) -> bool:
        return not flag_in(configuration, "returnImmediately")

    def history_length(self, fields: JsonObject) -> int | None:
        return length_in(fields)

    def task(self, execution: TaskExecution, history: int | None, *, artifacts: bool = True) -> JsonObject:
        task: JsonObject = {
            "id": execution.id,
            "contextId": execution.context_id,
            "status": _status(execution.status),
            "history": [_message(message) for message in latest(execution.history, history)],
        }
        if artifacts:
            task["artifacts"] = [_artifact(result) for result in execution.artifacts()]
        return task

    def send_result(self, task: JsonObject) -> JsonObject:
        return {"task": task}

    def update(self, execution: TaskExecution, update: TaskUpdate) -> JsonObject:
        about: JsonObject = {"taskId": execution.id, "contextId": execution.context_id}
        if isinstance(update, TaskStatus):
            return {"statusUpdate": {**about, "status": _status(update)}}
        artifact = _artifact(update)
        return {
            "artifactUpdate": {
                **about,
                "artifact": artifact,
                "append": update.appends,
                "lastChunk": not update.is_partial,
            }
        }

    def error_data(self, code: int) -> Json:
        reason = _REASONS.get(code)
        if reason is None:
            return None
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        return [{"@type": kind, "reason": reason, "domain": "a2a-protocol.org"}]


def _status(status: TaskStatus) -> JsonObject:
    fields: JsonObject = {"state": STATES[status.state], "timestamp": timestamp(status.at)}
    if status.message is not None:
        fields["message"] = _message(status.message)
    return fields


def _message(message: Message) -> JsonObject:
    fields: JsonObject = {
        "role": _ROLES[message.role],
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
            return {"text": text}
        case Data(data=data):
            return {"data": data}
        case File():
            content: JsonObject = (
                {"url": part.url}
                if part.content is None
                else {"raw": base64.b64encode(part.content).decode()}
            )
            file_fields: JsonObject = {"mediaType": part.media_type, "filename": part.name}
            return content | {name: value for name, value in file_fields.items() if value is not None}
