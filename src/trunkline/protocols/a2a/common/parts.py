"""
Parts: what Google's ADK says in their metadata, and how much of them a progress report shows.

    {"adk_thought": true}             the model's thinking, which is not output
    {"adk_type": "function_call"}     a function that the agent has called and waits for

    Progress {"kind": "status" | "artifact", "text", "artifact_id", "name", "append", "last", "parts"}

The `parts` of a progress report are those that are not text, in the form in which the agent sent them. A long string
in one (the bytes of a file) is cut. A part that is still too long is only named.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType

from trunkline.jsontypes import Json, JsonObject, encode


class _AdkMetadata(msgspec.Struct):
    adk_thought: bool = False
    adk_type: str | None = None


_NO_ADK_METADATA = _AdkMetadata()


def is_adk_thought(metadata: Raw | UnsetType) -> bool:
    return metadata is not UNSET and _adk_metadata_in(metadata).adk_thought


def is_adk_function_call(metadata: Raw | UnsetType) -> bool:
    return metadata is not UNSET and _adk_metadata_in(metadata).adk_type == "function_call"


def _adk_metadata_in(metadata: Raw) -> _AdkMetadata:
    if b'"adk_t' not in bytes(metadata):
        return _NO_ADK_METADATA
    try:
        return msgspec.json.decode(metadata, type=_AdkMetadata)
    except msgspec.ValidationError:
        return _NO_ADK_METADATA


# A name, an address, a small table. The whole is in the step's output.
_SHOWN_BYTES = 4_096
_SHOWN_CHARACTERS = 200


def shown_part(part: JsonObject) -> JsonObject:
    """The part as a run's events may show it."""
    size = len(encode(part))
    if size <= _SHOWN_BYTES:
        return part
    cut = {name: _cut(value) for name, value in part.items()}
    if len(encode(cut)) <= _SHOWN_BYTES:
        return cut
    return {"kind": _cut(part.get("kind")), "omitted_bytes": size}


def _cut(value: Json) -> Json:
    match value:
        case str():
            return value if len(value) <= _SHOWN_CHARACTERS else value[:_SHOWN_CHARACTERS] + "…"
        case dict():
            return {name: _cut(inner) for name, inner in value.items()}
        case list():
            return [_cut(inner) for inner in value]
        case _:
            return value
