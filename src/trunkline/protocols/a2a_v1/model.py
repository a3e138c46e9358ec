"""
The objects of an A2A 1.0 answer, as far as Trunkline looks into them.

    Task            {"id", "contextId", "status": {"state", "message", "timestamp"},
                     "artifacts": [Artifact], "history": [Message], "metadata"}
    Message         {"messageId", "contextId", "taskId", "role", "parts": [Part], "metadata", …}
    Artifact        {"artifactId", "name", "description", "parts": [Part], "metadata", "extensions"}
    Part            {"text" | "raw" | "url" | "data", "metadata", "filename", "mediaType"}
    StatusUpdate    {"taskId", "contextId", "status", "metadata"}
    ArtifactUpdate  {"taskId", "contextId", "artifact", "append", "lastChunk", "metadata"}

The structs are exact: an unknown field is refused, because they are encoded again into the output and must
lose nothing. What does not fit is read by tolerant.py. Contents of any size (`raw`, `data`, `metadata`) stay
the bytes they were.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import UNSET, Raw, UnsetType

from trunkline.protocols.a2a_task.marks import marks_function_call, marks_thought

Text = str | UnsetType
Kept = Raw | UnsetType


class Part(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    text: Text = UNSET
    raw: Kept = UNSET
    url: Kept = UNSET
    data: Kept = UNSET
    metadata: Kept = UNSET
    filename: Kept = UNSET
    media_type: Kept = UNSET


class Message(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    message_id: Text = UNSET
    context_id: Text = UNSET
    task_id: Text = UNSET
    role: Text = UNSET
    parts: list[Part] | UnsetType = UNSET
    metadata: Kept = UNSET
    extensions: Kept = UNSET
    reference_task_ids: Kept = UNSET

    def has_parts(self) -> bool:
        return bool(parts_of(self))

    def texts(self) -> list[str]:
        return texts_in(parts_of(self))

    def values(self) -> list[Raw]:
        return data_in(parts_of(self))

    def calls(self) -> list[Raw]:
        return data_in([part for part in parts_of(self) if marks_function_call(part.metadata)])


class Artifact(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    artifact_id: Text = UNSET
    name: Text = UNSET
    description: Text = UNSET
    parts: list[Part] | UnsetType = UNSET
    metadata: Kept = UNSET
    extensions: Kept = UNSET

    def has_parts(self) -> bool:
        return bool(parts_of(self))

    def texts(self) -> list[str]:
        return texts_in(parts_of(self))

    def values(self) -> list[Raw]:
        return data_in(parts_of(self))


class Status(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    state: str
    message: Message | None = None
    timestamp: Kept = UNSET


class Task(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    id: Text = UNSET
    context_id: Text = UNSET
    status: Status
    artifacts: list[Artifact] = []
    history: list[Message] = []
    metadata: Kept = UNSET


class StatusUpdate(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    task_id: Text = UNSET
    context_id: Text = UNSET
    status: Status
    metadata: Kept = UNSET


class ArtifactUpdate(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    task_id: Text = UNSET
    context_id: Text = UNSET
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: Kept = UNSET


class Result(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """What a send, an event of a stream (one of the first four) or a get (a bare Task) is answered with."""

    task: Task | UnsetType = UNSET
    message: Message | UnsetType = UNSET
    status_update: StatusUpdate | UnsetType = UNSET
    artifact_update: ArtifactUpdate | UnsetType = UNSET
    id: Text = UNSET
    context_id: Text = UNSET
    status: Status | UnsetType = UNSET
    artifacts: list[Artifact] = []
    history: list[Message] = []
    metadata: Kept = UNSET


class _Wrapped(msgspec.Struct, rename="camel"):
    task: Kept = UNSET
    message: Kept = UNSET
    status_update: Kept = UNSET
    artifact_update: Kept = UNSET


def bare(result: bytes) -> bytes:
    """All of a result as JSON, without its wrapper: the same whether it answers a send or a get."""
    if not result.lstrip().startswith(b"{"):
        return result
    wrapped = msgspec.json.decode(result, type=_Wrapped)
    for inner in (wrapped.task, wrapped.message, wrapped.status_update, wrapped.artifact_update):
        if inner is not UNSET and bytes(memoryview(inner)[:1]) == b"{":
            return bytes(inner)
    return result


def is_thought(part: Part) -> bool:
    return marks_thought(part.metadata)


def texts_in(parts: Iterable[Part]) -> list[str]:
    return [part.text for part in parts if part.text is not UNSET and not is_thought(part)]


def data_in(parts: Iterable[Part]) -> list[Raw]:
    return [part.data for part in parts if part.data is not UNSET and not is_thought(part)]


def parts_of(holder: Message | Artifact | None) -> list[Part]:
    return [] if holder is None or holder.parts is UNSET else holder.parts


def said(text: str | UnsetType | None) -> str | None:
    """A string that is there and not empty."""
    return None if text is UNSET else text or None
