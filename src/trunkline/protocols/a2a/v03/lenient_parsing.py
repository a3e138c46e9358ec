"""
Results that are not in the exact form of A2A 0.3, and how they are understood all the same.

    {"task": {…}}  {"message": {…}}
    {"statusUpdate": {"taskId", "status"}}  {"artifactUpdate": {"taskId", "artifact"}}
    {"type": "task", "context_id": …}  {"status": "completed"}  {"status": {"state": "TASK_STATE_COMPLETED"}}
    {"artifacts": [{"artifactId": "a", "parts": […]}, {"artifactId": "a", "append": true, "parts": […]}]}
    {"artifacts": [{"artifact": {…}, "append": true}]}  {"error": …} in a result

Where an object does not say what it is, its fields decide. What cannot be used is named in a note.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, Raw, UnsetType

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols.a2a.v03.model import V03Artifact, V03Message, V03Part
from trunkline.protocols.a2a.v03.parsed_result import Form, V03ParsedResult

_WRAPPERS = ("task", "statusUpdate", "status_update", "artifactUpdate", "artifact_update")
_FORMS: dict[str, Form] = {"task": "task", "status-update": "task", "message": "message"}


def parse_lenient_result(result: Json) -> V03ParsedResult:
    if not isinstance(result, dict):
        message = _message_of(result) if isinstance(result, str) else None
        return V03ParsedResult(form="other", certain=False, message=message)
    body = unwrapped(result)
    message = result.get("message")
    reading = V03ParsedResult(
        form=_form(body),
        certain=isinstance(body.get("status"), dict) or "parts" in body or "artifact" in body,
        remote_task_id=_remote_id(body),
        context_id=string_in(body, "contextId", "context_id"),
        metadata=_raw(body.get("metadata")),
        reported_error=_reported_error(body),
        notes=[],
    )
    _read_status(body, reading)
    _read_artifacts(body, reading)
    _read_history(body, reading)
    if reading.form == "message":
        reading.message, reading.message_whole = _message_of(body), body
        reading.remote_task_id = string_in(body, "taskId", "task_id")
    elif isinstance(message, dict):
        reading.message = _message_of(message)
    return reading


def unwrapped(result: JsonObject) -> JsonObject:
    for name in _WRAPPERS:
        inner = result.get(name)
        if isinstance(inner, dict):
            return inner
    message = result.get("message")
    if isinstance(message, dict) and "parts" in message and "status" not in result:
        return message
    return result


def _form(body: JsonObject) -> Form:
    said = string_in(body, "kind", "type")
    if isinstance(body.get("artifact"), dict):
        return "artifact-update"
    if said in _FORMS and not (said == "message" and "status" in body):
        return _FORMS[said]
    if any(name in body for name in ("status", "state", "artifacts", "history")):
        return "task"
    return "message" if "parts" in body else "other"


def _remote_id(body: JsonObject) -> str | None:
    return string_in(body, "taskId", "task_id", "id")


def _read_status(body: JsonObject, reading: V03ParsedResult) -> None:
    status = body.get("status", body.get("state"))
    if isinstance(status, str):
        reading.state = status
        reading.notes.append(f"'status' should be an object with a 'state', not the string '{status}'")
    elif isinstance(status, dict):
        state = status.get("state")
        reading.state = state if isinstance(state, str) else None
        said = status.get("message")
        reading.status_message = _message_of(said) if isinstance(said, str | dict) else None
        reading.status_message_whole = said if isinstance(said, dict) else None


def _read_artifacts(body: JsonObject, reading: V03ParsedResult) -> None:
    listed = body.get("artifacts", body.get("artifact"))
    whole = _merged(listed if isinstance(listed, list) else [listed], reading.notes)
    reading.artifacts_whole = whole
    reading.artifacts = [
        V03Artifact(
            parts=list(parts_in(artifact.get("parts"))), metadata=_raw(artifact.get("metadata")) or UNSET
        )
        for artifact in whole
    ]
    if listed is not None and not isinstance(listed, list | dict):
        reading.notes.append("'artifacts' should be an array")


def _merged(artifacts: list[Json], notes: list[str]) -> list[JsonObject]:
    """The artifacts by id: one with `append` adds its parts to the earlier one, one without replaces it."""
    merged: dict[str, JsonObject] = {}
    for index, item in enumerate(artifacts):
        if not isinstance(item, dict):
            continue
        inner = item.get("artifact")
        artifact = inner if isinstance(inner, dict) else item
        identity = string_in(artifact, "artifactId", "artifact_id")
        key = f"#{index}" if identity is None else f"id:{identity}"
        earlier = merged.get(key)
        if earlier is not None and (item.get("append") is True or artifact.get("append") is True):
            parts: list[Json] = [*list_in(earlier.get("parts")), *list_in(artifact.get("parts"))]
            artifact = dict(earlier)
            artifact["parts"] = parts
        elif earlier is not None:
            notes.append(f"Several artifacts have the artifactId '{identity}': the last one counts")
        merged[key] = artifact
    return list(merged.values())


def _read_history(body: JsonObject, reading: V03ParsedResult) -> None:
    history = body.get("history")
    if not isinstance(history, list):
        if history is not None:
            reading.notes.append("Can't extract output from history: it should be an array of messages")
        return
    reading.history_whole = history
    reading.history = [_message_of(item) if isinstance(item, dict) else V03Message() for item in history]


def _message_of(value: JsonObject | str) -> V03Message:
    if isinstance(value, str):
        return V03Message(parts=[V03Part(text=value)])
    role = value.get("role")
    parts = value.get("parts")
    return V03Message(
        role=role if isinstance(role, str) else UNSET,
        parts=list(parts_in(parts)) if isinstance(parts, list) else UNSET,
        metadata=_raw(value.get("metadata")) or UNSET,
    )


def parts_in(parts: Json) -> Iterator[V03Part]:
    for part in list_in(parts):
        if isinstance(part, str):
            yield V03Part(text=part)
        elif isinstance(part, dict):
            text = part.get("text")
            yield V03Part(
                kind=string_in(part, "kind", "type") or UNSET,
                text=text if isinstance(text, str) else UNSET,
                data=_raw(part["data"]) or UNSET if "data" in part else UNSET,
                metadata=_part_metadata(part),
            )


def _part_metadata(part: JsonObject) -> Raw | UnsetType:
    metadata = part.get("metadata")
    marks = metadata if isinstance(metadata, dict) else {}
    if part.get("adk_thought") is True:
        marks = marks | {"adk_thought": True}
    return Raw(encode(marks)) if marks else UNSET


def _reported_error(body: JsonObject) -> str | None:
    error = body.get("error")
    if error in (None, "", False):
        return None
    if isinstance(error, dict):
        said = error.get("message")
        return said if isinstance(said, str) else encode(error).decode()
    return error if isinstance(error, str) else encode(error).decode()


def string_in(body: JsonObject, *names: str) -> str | None:
    for name in names:
        value = body.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def list_in(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _raw(value: Json) -> Raw | None:
    return None if value is None else Raw(encode(value))
