"""
The parts of a message as a workflow writes them, the same for every dialect.

    {"text": "…"}                                            a string alone is a text, too
    {"data": …}
    {"raw": "<base64>", "mediaType": "…", "filename": "…"}   a file by its bytes; also "bytes", "name"
    {"url": "https://…", "mediaType": "…"}                   a file by its address; also "uri"
    {"kind": "text" | "data" | "file", "file": {"bytes" | "uri", "mimeType", "name"}}

Every part may have `metadata`. An input with a list `parts` is such a message; the fields next to the list are
for the agent as well, as the message's metadata.
"""

from __future__ import annotations

import base64
import binascii
from typing import NoReturn

import msgspec

from trunkline.jsontypes import Json, JsonObject
from trunkline.protocols.answer_json import json_kind
from trunkline.protocols.outcomes import ProtocolTranslationError

_FIX = "Write each part as {text}, {data}, {raw, mediaType, filename} or {url, mediaType, filename}."
# The fields that hold a content, and what each is.
_CONTENTS = {
    "text": "text",
    "data": "data",
    "file": "file",
    "raw": "raw",
    "bytes": "raw",
    "url": "url",
    "uri": "url",
}
_KINDS = {"text": ("text",), "data": ("data",), "file": ("file", "raw", "url")}
_MEDIA_TYPE = ("mediaType", "mimeType", "media_type", "mime_type")
_NAME = ("filename", "name")
_KNOWN = frozenset({*_CONTENTS, *_MEDIA_TYPE, *_NAME, "kind", "type", "metadata"})
_IN_A_FILE = frozenset({"bytes", "raw", "uri", "url", *_MEDIA_TYPE, *_NAME})
# ProtoJSON takes both alphabets of base64; agents of other dialects know the first only.
_URL_ALPHABET = str.maketrans("-_", "+/")


class TextPart(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    media_type: str | None = None
    name: str | None = None
    metadata: JsonObject | None = None


class DataPart(msgspec.Struct, frozen=True, kw_only=True):
    data: Json
    media_type: str | None = None
    name: str | None = None
    metadata: JsonObject | None = None


class FilePart(msgspec.Struct, frozen=True, kw_only=True):
    """A file, by exactly one of `raw` (its bytes in base64, with padding) and `url`."""

    raw: str | None = None
    url: str | None = None
    media_type: str | None = None
    name: str | None = None
    metadata: JsonObject | None = None


MessagePart = TextPart | DataPart | FilePart


def parts_in(data: Json) -> list[Json] | None:
    """The parts that an input spells out; None when it does not."""
    listed = data.get("parts") if isinstance(data, dict) else None
    return listed if isinstance(listed, list) else None


def fields_other_than_parts(data: Json) -> JsonObject:
    """What an input says besides its parts."""
    return {key: value for key, value in data.items() if key != "parts"} if isinstance(data, dict) else {}


def read_parts(listed: list[Json], protocol: str) -> list[MessagePart]:
    """The parts, in their order; raises `ProtocolTranslationError` that names the one at fault."""
    if not listed:
        _refuse("parts is empty: a message has at least one part", protocol, listed)
    return [_PartReader(f"parts[{index}]", part, protocol).read() for index, part in enumerate(listed)]


class _PartReader:
    """Reads one part, and knows its name for an error."""

    def __init__(self, where: str, part: Json, protocol: str) -> None:
        self.where = where
        self.part = part
        self.protocol = protocol

    def read(self) -> MessagePart:
        if isinstance(self.part, str):
            return TextPart(text=self.part)
        if not isinstance(self.part, dict):
            self.refuse(f"is {json_kind(self.part)}, not an object")
        part = self.part
        self.check_keys(part, _KNOWN, "")
        field = self.content_field(part)
        metadata = part.get("metadata")
        if metadata is not None and not isinstance(metadata, dict):
            self.refuse(f"has metadata that is {json_kind(metadata)}, not an object")
        media_type, name = self.string(part, _MEDIA_TYPE), self.string(part, _NAME)
        content = part[field]
        match _CONTENTS[field]:
            case "data":
                return DataPart(data=content, media_type=media_type, name=name, metadata=metadata)
            case "text":
                if not isinstance(content, str):
                    self.refuse(f"has a text that is {json_kind(content)}, not a string")
                return TextPart(text=content, media_type=media_type, name=name, metadata=metadata)
            case "file":
                return self.nested_file(content, media_type, name, metadata)
            case _:
                return self.file(part, media_type, name, metadata)

    def content_field(self, part: JsonObject) -> str:
        """The one field that has the content."""
        found = [
            field for field in _CONTENTS if field in part and (part[field] is not None or field == "data")
        ]
        kind = part.get("kind", part.get("type"))
        if len(found) != 1:
            said = f"has {' and '.join(found)}" if found else "has none of text, data, raw and url"
            self.refuse(f"{said}: a part has exactly one content")
        if kind is None:
            return found[0]
        if not isinstance(kind, str) or kind not in _KINDS:
            self.refuse("has a kind that is none of text, data and file")
        if _CONTENTS[found[0]] not in _KINDS[kind]:
            self.refuse(f"is called {kind}, but has {found[0]}")
        return found[0]

    def nested_file(
        self, file: Json, media_type: str | None, name: str | None, metadata: JsonObject | None
    ) -> FilePart:
        if not isinstance(file, dict):
            self.refuse(f"has a file that is {json_kind(file)}, not an object")
        self.check_keys(file, _IN_A_FILE, ".file")
        inner_type, inner_name = self.string(file, _MEDIA_TYPE), self.string(file, _NAME)
        return self.file(file, inner_type or media_type, inner_name or name, metadata)

    def file(
        self, file: JsonObject, media_type: str | None, name: str | None, metadata: JsonObject | None
    ) -> FilePart:
        raw, url = self.string(file, ("raw", "bytes")), self.string(file, ("url", "uri"))
        if (raw is None) == (url is None):
            self.refuse("must have either the file's bytes or its url")
        return FilePart(
            raw=None if raw is None else self.base64(raw),
            url=url,
            media_type=media_type,
            name=name,
            metadata=metadata,
        )

    def base64(self, text: str) -> str:
        standard = text.translate(_URL_ALPHABET).rstrip("=")
        standard += "=" * (-len(standard) % 4)
        try:
            base64.b64decode(standard, validate=True)
        except (binascii.Error, ValueError) as exc:
            self.refuse(f"has bytes that are not base64 ({exc})")
        return standard

    def string(self, fields: JsonObject, names: tuple[str, ...]) -> str | None:
        """The first of the named fields that is there."""
        for name in names:
            value = fields.get(name)
            if value is None:
                continue
            if not isinstance(value, str):
                self.refuse(f"has a {name} that is {json_kind(value)}, not a string")
            return value
        return None

    def check_keys(self, fields: JsonObject, known: frozenset[str], inside: str) -> None:
        unknown = [key for key in fields if key not in known]
        if unknown:
            self.refuse(f"has a field '{unknown[0]}' that parts do not support", inside)

    def refuse(self, what: str, inside: str = "") -> NoReturn:
        _refuse(f"{self.where}{inside} {what}", self.protocol, self.part)


def _refuse(message: str, protocol: str, original: Json) -> NoReturn:
    raise ProtocolTranslationError(
        message, protocol, "request", original, code="request_not_encodable", fix=_FIX
    )
