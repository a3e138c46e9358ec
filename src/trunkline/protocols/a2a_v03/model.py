"""
The objects of an A2A answer, as far as Trunkline looks into them.

    Task      {"kind": "task", "id", "contextId", "status": {"state", "message", "timestamp"},
               "artifacts": [Artifact], "history": [Message], "metadata"}
    Message   {"kind": "message", "role", "parts": [Part], "messageId", "taskId", "contextId", "metadata", …}
    Artifact  {"artifactId", "name", "description", "parts": [Part], "metadata", "extensions"}
    Part      {"kind": "text", "text"} | {"kind": "data", "data"} | {"kind": "file", "file"}, and "metadata"

The structs are exact: an unknown field is refused, because they are encoded again into the output and must
lose nothing. What does not fit is read by tolerant.py. Contents of any size (`data`, `file`, `metadata`) stay
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
    kind: Text = UNSET
    text: Text = UNSET
    data: Kept = UNSET
    file: Kept = UNSET
    metadata: Kept = UNSET


class Message(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    role: Text = UNSET
    parts: list[Part] | UnsetType = UNSET
    message_id: Text = UNSET
    kind: Text = UNSET
    task_id: str | UnsetType | None = UNSET
    context_id: str | UnsetType | None = UNSET
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
    name: str | UnsetType | None = UNSET
    description: str | UnsetType | None = UNSET
    parts: list[Part] = []
    metadata: Kept = UNSET
    extensions: Kept = UNSET

    def has_parts(self) -> bool:
        return bool(self.parts)

    def texts(self) -> list[str]:
        return texts_in(self.parts)

    def values(self) -> list[Raw]:
        return data_in(self.parts)


class Status(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    state: str
    message: Message | None = None
    timestamp: Kept = UNSET


class Result(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A bare Task or Message in the form of 0.3."""

    kind: Text = UNSET
    id: Text = UNSET
    context_id: str | None = None
    status: Status | None = None
    artifacts: list[Artifact] | None = None
    history: list[Message] | None = None
    metadata: Kept = UNSET
    role: Text = UNSET
    parts: list[Part] | UnsetType = UNSET
    message_id: Text = UNSET
    task_id: str | None = None
    extensions: Kept = UNSET
    reference_task_ids: Kept = UNSET


def is_thought(part: Part) -> bool:
    return marks_thought(part.metadata)


def texts_in(parts: Iterable[Part]) -> list[str]:
    """The texts; what is neither called data nor file and has a text is one, whatever its kind is called."""
    return [
        part.text
        for part in parts
        if part.text is not UNSET and part.kind not in ("data", "file") and not is_thought(part)
    ]


def data_in(parts: Iterable[Part]) -> list[Raw]:
    return [part.data for part in parts if part.data is not UNSET and not is_thought(part)]


def parts_of(message: Message | None) -> list[Part]:
    return [] if message is None or message.parts is UNSET else message.parts
