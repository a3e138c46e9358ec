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


class Artifact(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    artifact_id: Text = UNSET
    name: str | UnsetType | None = UNSET
    description: str | UnsetType | None = UNSET
    parts: list[Part] = []
    metadata: Kept = UNSET
    extensions: Kept = UNSET


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


class _Marks(msgspec.Struct):
    adk_thought: bool = False
    adk_type: str | None = None


def is_thought(part: Part) -> bool:
    """True for a part that Google's ADK marks as the model's thinking, which is not output."""
    return _marks_of(part).adk_thought


def is_function_call(part: Part) -> bool:
    """True for the data of a function that an agent of Google's ADK has called and waits for."""
    return _marks_of(part).adk_type == "function_call"


_NO_MARKS = _Marks()


def _marks_of(part: Part) -> _Marks:
    if part.metadata is UNSET or b'"adk_t' not in bytes(part.metadata):
        return _NO_MARKS
    try:
        return msgspec.json.decode(part.metadata, type=_Marks)
    except msgspec.ValidationError:
        return _NO_MARKS


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


def text_of(message: Message | None) -> str:
    return "\n".join(texts_in(parts_of(message)))
