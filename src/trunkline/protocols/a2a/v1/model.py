"""
The objects of an A2A 1.0 answer, as far as Trunkline looks into them.

    Task            {"id", "contextId", "status": {"state", "message", "timestamp"},
                     "artifacts": [Artifact], "history": [Message], "metadata"}
    Message         {"messageId", "contextId", "taskId", "role", "parts": [Part], "metadata", …}
    Artifact        {"artifactId", "name", "description", "parts": [Part], "metadata", "extensions"}
    Part            {"text" | "raw" | "url" | "data", "metadata", "filename", "mediaType"}
    V1StatusUpdate    {"taskId", "contextId", "status", "metadata"}
    V1ArtifactUpdate  {"taskId", "contextId", "artifact", "append", "lastChunk", "metadata"}

The structs are exact: an unknown field is refused, because they are encoded again into the output and must
lose nothing. What does not fit is read by lenient_parsing.py. Contents of any size (`raw`, `data`, `metadata`) stay
the bytes they were.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import UNSET, Raw, UnsetType

from trunkline.protocols.a2a.common.parts import is_adk_function_call, is_adk_thought

TextField = str | UnsetType
RawField = Raw | UnsetType


class V1Part(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    text: TextField = UNSET
    raw: RawField = UNSET
    url: RawField = UNSET
    data: RawField = UNSET
    metadata: RawField = UNSET
    filename: RawField = UNSET
    media_type: RawField = UNSET


class V1Message(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    message_id: TextField = UNSET
    context_id: TextField = UNSET
    task_id: TextField = UNSET
    role: TextField = UNSET
    parts: list[V1Part] | UnsetType = UNSET
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


class V1Artifact(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    artifact_id: TextField = UNSET
    name: TextField = UNSET
    description: TextField = UNSET
    parts: list[V1Part] | UnsetType = UNSET
    metadata: RawField = UNSET
    extensions: RawField = UNSET

    def has_parts(self) -> bool:
        return bool(parts_of(self))

    def texts(self) -> list[str]:
        return texts_in(parts_of(self))

    def data_values(self) -> list[Raw]:
        return data_in(parts_of(self))


class V1Status(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    state: str
    message: V1Message | None = None
    timestamp: RawField = UNSET


class V1Task(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    id: TextField = UNSET
    context_id: TextField = UNSET
    status: V1Status
    artifacts: list[V1Artifact] = []
    history: list[V1Message] = []
    metadata: RawField = UNSET


class V1StatusUpdate(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    task_id: TextField = UNSET
    context_id: TextField = UNSET
    status: V1Status
    metadata: RawField = UNSET


class V1ArtifactUpdate(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    task_id: TextField = UNSET
    context_id: TextField = UNSET
    artifact: V1Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: RawField = UNSET


class V1Result(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """What a send, an event of a stream (one of the first four) or a get (a bare Task) is answered with."""

    task: V1Task | UnsetType = UNSET
    message: V1Message | UnsetType = UNSET
    status_update: V1StatusUpdate | UnsetType = UNSET
    artifact_update: V1ArtifactUpdate | UnsetType = UNSET
    id: TextField = UNSET
    context_id: TextField = UNSET
    status: V1Status | UnsetType = UNSET
    artifacts: list[V1Artifact] = []
    history: list[V1Message] = []
    metadata: RawField = UNSET


class _WrappedResult(msgspec.Struct, rename="camel"):
    task: RawField = UNSET
    message: RawField = UNSET
    status_update: RawField = UNSET
    artifact_update: RawField = UNSET


def unwrap_result(result: bytes) -> bytes:
    """All of a result as JSON, without its wrapper: the same whether it answers a send or a get."""
    if not result.lstrip().startswith(b"{"):
        return result
    wrapped = msgspec.json.decode(result, type=_WrappedResult)
    for inner in (wrapped.task, wrapped.message, wrapped.status_update, wrapped.artifact_update):
        if inner is not UNSET and bytes(memoryview(inner)[:1]) == b"{":
            return bytes(inner)
    return result


def is_thought(part: V1Part) -> bool:
    return is_adk_thought(part.metadata)


def texts_in(parts: Iterable[V1Part]) -> list[str]:
    return [part.text for part in parts if part.text is not UNSET and not is_thought(part)]


def data_in(parts: Iterable[V1Part]) -> list[Raw]:
    return [part.data for part in parts if part.data is not UNSET and not is_thought(part)]


def parts_of(holder: V1Message | V1Artifact | None) -> list[V1Part]:
    return [] if holder is None or holder.parts is UNSET else holder.parts


def non_empty(text: str | UnsetType | None) -> str | None:
    """A string that is there and not empty."""
    return None if text is UNSET else text or None
