"""
A part that is not in the exact form of A2A 1.0.

    "a text"  {"kind": "text", "text": "…"}  {"type": "data", "data": …}
    {"kind": "file", "file": {"bytes" | "uri", "mimeType", "name"}}  {"media_type": …}  {"adk_thought": true}
"""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols.a2a.v1.model import V1Part

_FILE_FIELDS = {
    "raw": ("raw", "bytes"),
    "url": ("url", "uri"),
    "filename": ("filename", "name"),
    "media_type": ("mediaType", "media_type", "mimeType", "mime_type"),
}
_NO_TEXT = ("data", "file")


def parse_part(part: Json) -> V1Part | None:
    """What the part says; None when it is none."""
    if isinstance(part, str):
        return V1Part(text=part)
    if not isinstance(part, dict):
        return None
    text, data = part.get("text"), part.get("data")
    is_text = isinstance(text, str) and part.get("kind", part.get("type")) not in _NO_TEXT
    return V1Part(
        text=text if is_text and isinstance(text, str) else UNSET,
        data=UNSET if data is None else Raw(encode(data)),
        metadata=_part_metadata(part),
        **_file_in(part),
    )


def parse_parts(parts: Json) -> list[V1Part]:
    found = [parse_part(part) for part in parts] if isinstance(parts, list) else []
    return [part for part in found if part is not None]


def _file_in(part: JsonObject) -> dict[str, Raw]:
    """A file's fields, under the names of 1.0."""
    inner = part.get("file")
    fields = part | inner if isinstance(inner, dict) else part
    found = {
        meant: next((fields[name] for name in names if fields.get(name) is not None), None)
        for meant, names in _FILE_FIELDS.items()
    }
    return {name: Raw(encode(value)) for name, value in found.items() if value is not None}


def _part_metadata(part: JsonObject) -> Raw | UnsetType:
    metadata = part.get("metadata")
    marks = metadata if isinstance(metadata, dict) else {}
    if part.get("adk_thought") is True:
        marks = marks | {"adk_thought": True}
    return Raw(encode(marks)) if marks else UNSET
