"""
Tasks, messages and updates of 1.0 in the form of 0.3.

    Task      {"kind": "task", "id", "contextId", "status": {"state": "completed"}, "artifacts", "history"}
    Message   {"kind": "message", "role": "agent", "parts": [{"kind": "text", "text"}]}

Data of 0.3 are objects: any other JSON is `{"value": …}`, marked as the A2A project's SDK marks it.
"""

from __future__ import annotations

from trunkline.jsontypes import Json, JsonObject
from trunkline.publishing.messages import WRAPPED_DATA


def task_v03(task: JsonObject) -> JsonObject:
    changed: JsonObject = {**task, "kind": "task", "status": _status(task["status"])}
    if "artifacts" in task:
        changed["artifacts"] = [artifact_v03(artifact) for artifact in _objects(task["artifacts"])]
    if "history" in task:
        changed["history"] = [message_v03(message) for message in _objects(task["history"])]
    return changed


def event_v03(event: JsonObject, is_last: bool) -> JsonObject:
    """An event of a stream. `final` tells clients of 0.3 that no more follow."""
    match event:
        case {"task": dict(task)}:
            return task_v03(task)
        case {"message": dict(message)}:
            return message_v03(message)
        case {"statusUpdate": dict(update)}:
            return {**update, "kind": "status-update", "status": _status(update["status"]), "final": is_last}
        case {"artifactUpdate": dict(update)}:
            artifact = update["artifact"]
            changed = artifact_v03(artifact) if isinstance(artifact, dict) else artifact
            return {**update, "kind": "artifact-update", "artifact": changed}
        case _:
            return event


def message_v03(message: JsonObject) -> JsonObject:
    role = "user" if message.get("role") == "ROLE_USER" else "agent"
    return {**message, "kind": "message", "role": role, "parts": _parts(message.get("parts"))}


def artifact_v03(artifact: JsonObject) -> JsonObject:
    return {**artifact, "parts": _parts(artifact.get("parts"))}


def state_v03(state: Json) -> str:
    return str(state).removeprefix("TASK_STATE_").lower().replace("_", "-")


def _status(status: Json) -> JsonObject:
    fields = status if isinstance(status, dict) else {}
    changed: JsonObject = {**fields, "state": state_v03(fields.get("state"))}
    message = fields.get("message")
    if isinstance(message, dict):
        changed["message"] = message_v03(message)
    return changed


def _parts(parts: Json) -> list[Json]:
    return [_part(part) for part in _objects(parts)]


def _part(part: JsonObject) -> JsonObject:
    metadata = part.get("metadata")
    extra: JsonObject = dict(metadata) if isinstance(metadata, dict) else {}
    if "raw" in part or "url" in part:
        content: JsonObject = {"bytes": part["raw"]} if "raw" in part else {"uri": part["url"]}
        names = (("mediaType", "mimeType"), ("filename", "name"))
        content |= {theirs: part[ours] for ours, theirs in names if ours in part}
        changed: JsonObject = {"kind": "file", "file": content}
    else:
        # Only files have a type and a name of their own in 0.3.
        extra = {name: part[name] for name in ("mediaType", "filename") if name in part} | extra
        if "text" in part:
            changed = {"kind": "text", "text": part["text"]}
        else:
            data = part.get("data")
            changed = {"kind": "data", "data": data if isinstance(data, dict) else {"value": data}}
            if not isinstance(data, dict):
                extra[WRAPPED_DATA] = True
    return {**changed, "metadata": extra} if extra else changed


def _objects(value: Json) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
