"""
The objects of an A2A answer, as far as Trunkline looks into them.

    Task      {"kind": "task", "id", "contextId", "status": {"state", "message", "timestamp"},
               "artifacts": [Artifact], "history": [Message], "metadata"}
    Message   {"kind": "message", "role", "parts": [Part], "messageId", "taskId", "contextId", "metadata", …}
    Artifact  {"artifactId", "name", "description", "parts": [Part], "metadata", "extensions"}
    Part      {"kind": "text", "text"} | {"kind": "data", "data"} | {"kind": "file", "file"}, and "metadata"

The structs are exact: an unknown field is refused, because they are encoded again into the output and must
lose nothing. What does not fit is read by lenient_parsing.py. Contents of any size (`data`, `file`, `metadata`) stay
the bytes they were.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import UNSET, Raw, UnsetType

from trunkline.protocols.a2a.common.parts import is_adk_function_call, is_adk_thought

TextField = str | UnsetType
RawField = Raw | UnsetType


class V03Part(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    kind: TextField = UNSET
    text: TextField = UNSET
    data: RawField = UNSET
    file: RawField = UNSET
    metadata: RawField = UNSET


class V03Message(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    role: TextField = UNSET
    parts: list[V03Part] | UnsetType = UNSET
    message_id: TextField = UNSET
    kind: TextField = UNSET
    task_id: str | UnsetType | None = UNSET
    context_id: str | UnsetType | None = UNSET
    metadata: RawField = UNSET
    extensions: RawField = UNSET
    reference_task_ids: RawField = UNSET

    def has_parts(self) -> bool:
        return bool(parts_of(self))

    def texts(self) -> list[str]:
        return texts_in(parts_of(self))

    def data_values(self) -> list[Raw]:
        return data_in(parts_of(self))

    def calls(self) -> list[Raw]:
        return data_in([part for part in parts_of(self) if is_adk_function_call(part.metadata)])


class V03Artifact(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    artifact_id: TextField = UNSET
    name: str | UnsetType | None = UNSET
    description: str | UnsetType | None = UNSET
    parts: list[V03Part] = []
    metadata: RawField = UNSET
    extensions: RawField = UNSET

    def has_parts(self) -> bool:
        return bool(self.parts)

    def texts(self) -> list[str]:
        return texts_in(self.parts)

    def data_values(self) -> list[Raw]:
        return data_in(self.parts)


class V03Status(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    state: str
    message: V03Message | None = None
    timestamp: RawField = UNSET


class V03Result(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A bare Task or Message in the form of 0.3."""

    kind: TextField = UNSET
    id: TextField = UNSET
    context_id: str | None = None
    status: V03Status | None = None
    artifacts: list[V03Artifact] | None = None
    history: list[V03Message] | None = None
    metadata: RawField = UNSET
    role: TextField = UNSET
    parts: list[V03Part] | UnsetType = UNSET
    message_id: TextField = UNSET
    task_id: str | None = None
    extensions: RawField = UNSET
    reference_task_ids: RawField = UNSET


def is_thought(part: V03Part) -> bool:
    return is_adk_thought(part.metadata)


def texts_in(parts: Iterable[V03Part]) -> list[str]:
    """The texts; what is neither called data nor file and has a text is one, whatever its kind is called."""
    return [
        part.text
        for part in parts
        if part.text is not UNSET and part.kind not in ("data", "file") and not is_thought(part)
    ]


def data_in(parts: Iterable[V03Part]) -> list[Raw]:
    return [part.data for part in parts if part.data is not UNSET and not is_thought(part)]


def parts_of(message: V03Message | None) -> list[V03Part]:
    return [] if message is None or message.parts is UNSET else message.parts
