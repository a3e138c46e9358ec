"""
Results that are not in the exact form of A2A 1.0, and how they are understood all the same.

    {"kind": "task", …}  {"status_update": {…}}  {"type": "message", "context_id": …}
    {"status": "completed"}  {"status": {"state": 3}}  {"status": {"message": "in one word"}}
    {"artifacts": [{"artifactId": "a", "parts": […]}, {"artifactId": "a", "append": true, "parts": […]}]}
    {"artifacts": [{"artifact": {…}, "append": true}]}  {"error": …} in a result

Where an object does not say what it is, its fields decide. What cannot be used is named in a note.
"""

from __future__ import annotations

from msgspec import UNSET, Raw

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols.a2a.common.states import role_of, state_word
from trunkline.protocols.a2a.v1.artifacts import ArtifactAssembler
from trunkline.protocols.a2a.v1.lenient_parts import parse_parts
from trunkline.protocols.a2a.v1.model import V1Artifact, V1Message
from trunkline.protocols.a2a.v1.parsed_result import Form, V1ParsedResult

_WRAPPERS: dict[str, Form] = {
    "task": "task",
    "statusUpdate": "status-update",
    "status_update": "status-update",
    "artifactUpdate": "artifact-update",
    "artifact_update": "artifact-update",
}
_KINDS: dict[str, Form] = {
    "task": "task",
    "status-update": "status-update",
    "artifact-update": "artifact-update",
    "message": "message",
}


def parse_lenient_result(result: Json) -> V1ParsedResult:
    if not isinstance(result, dict):
        message = _message_of(result) if isinstance(result, str) else None
        return V1ParsedResult(form="other", message=message)
    body, form = _unwrapped(result)
    reading = V1ParsedResult(
        form=form,
        remote_task_id=_remote_id(body, form),
        context_id=_string(body, "contextId", "context_id"),
        metadata=_raw(body.get("metadata")),
        reported_error=_reported_error(body),
        notes=[],
    )
    _read_status(body, reading)
    _read_artifacts(body, reading)
    _read_history(body, reading)
    message = result.get("message")
    if form == "message":
        reading.message, reading.message_whole = _message_of(body), body
    elif isinstance(message, dict):
        reading.message = _message_of(message)
    return reading


def _unwrapped(result: JsonObject) -> tuple[JsonObject, Form]:
    for name, form in _WRAPPERS.items():
        inner = result.get(name)
        if isinstance(inner, dict):
            return inner, form
    message = result.get("message")
    if isinstance(message, dict) and "parts" in message and "status" not in result:
        return message, "message"
    return result, _form_of(result)


def _form_of(body: JsonObject) -> Form:
    if isinstance(body.get("artifact"), dict):
        return "artifact-update"
    said = _string(body, "kind", "type")
    if said in _KINDS and not (said == "message" and "status" in body):
        return _KINDS[said]
    if any(name in body for name in ("artifacts", "history")):
        return "task"
    if "status" in body or "state" in body:
        names_a_task = _string(body, "taskId", "task_id") is not None and "id" not in body
        return "status-update" if names_a_task else "task"
    return "message" if "parts" in body else "other"


def _remote_id(body: JsonObject, form: Form) -> str | None:
    task_id = _string(body, "taskId", "task_id")
    return task_id if form == "message" else task_id or _string(body, "id")


def _read_status(body: JsonObject, reading: V1ParsedResult) -> None:
    status = body.get("status", body.get("state"))
    if isinstance(status, dict):
        reading.state = state_word(status.get("state"))
        said = status.get("message")
        reading.status_message = _message_of(said) if isinstance(said, str | dict) else None
        reading.status_message_whole = said if isinstance(said, dict) else None
        return
    reading.state = state_word(status)
    if isinstance(status, str):
        reading.notes.append(f"'status' should be an object with a 'state', not the string '{status}'")


def _read_artifacts(body: JsonObject, reading: V1ParsedResult) -> None:
    listed = body.get("artifacts", body.get("artifact"))
    if isinstance(listed, list):
        reading.artifacts, reading.artifacts_whole = _merged(listed, reading.notes).joined()
    elif isinstance(listed, dict):
        reading.artifacts, reading.artifacts_whole = [_artifact_of(listed)], [listed]
        reading.append = body.get("append") is True
        reading.last_chunk = body.get("lastChunk") is True or body.get("last_chunk") is True
    elif listed is not None:
        reading.notes.append("'artifacts' should be an array")


def _merged(listed: list[Json], notes: list[str]) -> ArtifactAssembler:
    artifacts = ArtifactAssembler()
    for item in listed:
        if not isinstance(item, dict):
            continue
        inner = item.get("artifact")
        whole = inner if isinstance(inner, dict) else item
        artifact = _artifact_of(whole)
        append = item.get("append") is True or whole.get("append") is True
        if artifacts.add(artifact, whole, append=append):
            notes.append(
                f"Several artifacts have the artifactId '{artifact.artifact_id}': the last one counts"
            )
    return artifacts


def _artifact_of(value: JsonObject) -> V1Artifact:
    return V1Artifact(
        artifact_id=_string(value, "artifactId", "artifact_id") or UNSET,
        name=_string(value, "name") or UNSET,
        parts=parse_parts(value.get("parts")),
        metadata=_raw(value.get("metadata")) or UNSET,
    )


def _read_history(body: JsonObject, reading: V1ParsedResult) -> None:
    history = body.get("history")
    if not isinstance(history, list):
        if history is not None:
            reading.notes.append("Can't extract output from history: it should be an array of messages")
        return
    reading.history_whole = history
    reading.history = [_message_of(item) if isinstance(item, dict) else V1Message() for item in history]


def _message_of(value: JsonObject | str) -> V1Message:
    if isinstance(value, str):
        return V1Message(parts=parse_parts([value]))
    parts = value.get("parts")
    return V1Message(
        message_id=_string(value, "messageId", "message_id") or UNSET,
        role=role_of(value.get("role")) or UNSET,
        parts=parse_parts(parts) if isinstance(parts, list) else UNSET,
        metadata=_raw(value.get("metadata")) or UNSET,
    )


def _reported_error(body: JsonObject) -> str | None:
    error = body.get("error")
    if error in (None, "", False):
        return None
    if isinstance(error, dict):
        said = error.get("message")
        return said if isinstance(said, str) else encode(error).decode()
    return error if isinstance(error, str) else encode(error).decode()


def _string(body: JsonObject, *names: str) -> str | None:
    for name in names:
        value = body.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def _raw(value: Json) -> Raw | None:
    return None if value is None else Raw(encode(value))
