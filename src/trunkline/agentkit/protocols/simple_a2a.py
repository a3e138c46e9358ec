"""
Simple A2A, as an agent serves it.

    request  {"task_id": "…", "input": …}
    answer   {"task_id": "…", "status": "success", "output": {…}, "error": null}
             {"task_id": "…", "status": "error", "output": null, "error": "…"}

A text answer is `{"text": …}`, an object is that object, several artifacts are listed. Simple A2A has no questions: a
task that asks one fails, and its error says why.
"""

from __future__ import annotations

import base64

from trunkline.agentkit.errors import invalid_params
from trunkline.agentkit.json_values import Json, JsonObject, kind_of
from trunkline.agentkit.messages import Message
from trunkline.agentkit.parts import Data, File, Part, Text
from trunkline.agentkit.task_execution import TaskArtifact, TaskExecution


def is_simple(body: JsonObject) -> bool:
    return "task_id" in body and "jsonrpc" not in body


def read_request(body: JsonObject) -> Message:
    task_id = body["task_id"]
    if not isinstance(task_id, str) or not task_id:
        raise invalid_params(f"task_id is {kind_of(task_id)}, and must be a non-empty string")
    if "input" not in body:
        raise invalid_params("input is missing")
    given = body["input"]
    part = Text(text=given) if isinstance(given, str) else Data(data=given)
    # Not to be mistaken for a message of A2A with this id.
    return Message(id=f"simple-a2a/{task_id}", role="user", parts=(part,))


def answer(task_id: Json, execution: TaskExecution) -> JsonObject:
    """The response for an idle task."""
    if execution.state == "completed":
        return {
            "task_id": task_id,
            "status": "success",
            "output": _output(execution.artifacts()),
            "error": None,
        }
    return error(task_id, execution.status_text or f"The task is {execution.state}.")


def give_up_asking(execution: TaskExecution) -> None:
    execution.end(
        "failed",
        f"The agent asked a question, but Simple A2A does not support replies: {execution.status_text}",
    )
    # It has ended already; what is left is its handler, which waits.
    execution.cancel()


def error(task_id: Json, message: str) -> JsonObject:
    return {"task_id": task_id, "status": "error", "output": None, "error": message}


def _output(results: list[TaskArtifact]) -> JsonObject:
    if len(results) == 1 and len(results[0].parts) == 1:
        part = results[0].parts[0]
        if isinstance(part, Text):
            return {"text": part.text}
        if isinstance(part, Data) and isinstance(part.data, dict):
            return part.data
    if not results:
        return {}
    texts = [part.text for result in results for part in result.parts if isinstance(part, Text)]
    artifacts: list[Json] = [
        {"name": result.name, **_content(part)} for result in results for part in result.parts
    ]
    return {"text": "\n".join(texts), "artifacts": artifacts} if texts else {"artifacts": artifacts}


def _content(part: Part) -> JsonObject:
    match part:
        case Text(text=text):
            return {"text": text}
        case Data(data=data):
            return {"data": data}
        case File():
            content: JsonObject = (
                {"url": part.url}
                if part.content is None
                else {"bytes": base64.b64encode(part.content).decode()}
            )
            file_fields: JsonObject = {"media_type": part.media_type, "filename": part.name}
            return content | {name: value for name, value in file_fields.items() if value is not None}
