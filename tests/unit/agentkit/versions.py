"""The two versions of A2A as a caller writes and reads them, so that one test holds for both."""

from __future__ import annotations

from typing import NamedTuple

from trunkline.jsontypes import Json, JsonObject


class Version(NamedTuple):
    name: str
    send: str
    stream: str
    get: str
    cancel: str
    resubscribe: str

    def message(self, *parts: JsonObject, message_id: str = "m-1", **fields: Json) -> JsonObject:
        if self.name == "1.0":
            return {"messageId": message_id, "role": "ROLE_USER", "parts": list(parts), **fields}
        kinds: list[Json] = [{"kind": _kind(part), **part} for part in parts]
        return {"kind": "message", "messageId": message_id, "role": "user", "parts": kinds, **fields}

    def params(self, text: str = "tides", message_id: str = "m-1", **fields: Json) -> JsonObject:
        return {"message": self.message({"text": text}, message_id=message_id, **fields)}

    def at_once(self, params: JsonObject) -> JsonObject:
        """The same, to be answered before the task is done."""
        configuration: JsonObject = {"returnImmediately": True} if self.name == "1.0" else {"blocking": False}
        return {**params, "configuration": configuration}

    def task(self, result: JsonObject) -> JsonObject:
        """The task that a message was answered with."""
        task = result["task"] if self.name == "1.0" else result
        assert isinstance(task, dict)
        return task

    def state(self, holder: JsonObject) -> str:
        """Of a task or of an update, as 0.3 writes it."""
        status = holder["status"]
        assert isinstance(status, dict)
        return str(status["state"]).removeprefix("TASK_STATE_").lower().replace("_", "-")

    def update(self, result: JsonObject) -> tuple[str, JsonObject]:
        """What an event of a stream is, and what it has."""
        if self.name != "1.0":
            return str(result["kind"]), result
        (kind, inner), *_ = result.items()
        assert isinstance(inner, dict)
        return {"statusUpdate": "status-update", "artifactUpdate": "artifact-update"}.get(kind, kind), inner


V03 = Version("0.3", "message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/resubscribe")
V1 = Version("1.0", "SendMessage", "SendStreamingMessage", "GetTask", "CancelTask", "SubscribeToTask")
VERSIONS = [V03, V1]


def texts(task: JsonObject) -> list[str]:
    """The texts of all artifacts, or of the status message of what has none."""
    found = [part.get("text") for part in parts(task)]
    return [text for text in found if isinstance(text, str)]


def parts(task: JsonObject) -> list[JsonObject]:
    artifacts = task.get("artifacts")
    assert isinstance(artifacts, list)
    return [part for artifact in artifacts for part in _parts_of(artifact)]


def words(task: JsonObject) -> str:
    """What the status says."""
    status = task["status"]
    assert isinstance(status, dict)
    return " ".join(str(part["text"]) for part in _parts_of(status["message"]))


def _parts_of(holder: Json) -> list[JsonObject]:
    assert isinstance(holder, dict)
    listed = holder["parts"]
    assert isinstance(listed, list)
    return [part for part in listed if isinstance(part, dict)]


def _kind(part: JsonObject) -> str:
    return next(kind for kind in ("text", "data", "file") if kind in part)
