"""
The parts of messages and artifacts, in one form for every dialect; read from either spelling.

    0.3   {"kind": "text", "text"}   {"kind": "data", "data"}   {"kind": "file", "file": {"bytes" | "uri", …}}
    1.0   {"text"}                   {"data"}                   {"raw" | "url", "mediaType", "filename"}
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence

import msgspec

from trunkline.agentkit.errors import invalid_params
from trunkline.agentkit.json_values import Json, JsonObject, encode, kind_of

# Both alphabets of base64 are in use.
_URL_ALPHABET = str.maketrans("-_", "+/")


class Text(msgspec.Struct, frozen=True, kw_only=True):
    text: str


class Data(msgspec.Struct, frozen=True, kw_only=True):
    data: Json


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file, by its bytes or by its address."""

    content: bytes | None = None
    url: str | None = None
    media_type: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if (self.content is None) == (self.url is None):
            raise ValueError("A file has either its content or its url.")


Part = Text | Data | File


def clean(text: str) -> Text:
    """The text as a part; half a surrogate pair, which no JSON can carry, becomes a question mark."""
    return Text(text=text.encode(errors="replace").decode())


def joined(parts: Iterable[Part]) -> list[Part]:
    """The parts with texts that follow one another as one: a text that was told in pieces is still one text."""
    whole: list[Part] = []
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            texts.append(part.text)
            continue
        if texts:
            whole.append(Text(text="".join(texts)))
            texts = []
        whole.append(part)
    if texts:
        whole.append(Text(text="".join(texts)))
    return whole


def size_of(parts: Iterable[Part]) -> int:
    """About how many bytes they take."""
    return sum(_size(part) for part in parts)


def read_parts(listed: Json) -> tuple[Part, ...]:
    """The parts of a message; raises a refusal that names the one at fault."""
    if not isinstance(listed, list) or not listed:
        raise invalid_params("message.parts must be an array with at least one part")
    return tuple(_read(part, f"message.parts[{index}]") for index, part in enumerate(listed))


def _size(part: Part) -> int:
    match part:
        case Text(text=text):
            return len(text)
        case Data(data=data):
            return len(encode(data))
        case File(content=content):
            return len(content or b"")


def _read(part: Json, where: str) -> Part:
    if not isinstance(part, dict):
        raise invalid_params(f"{where} is {kind_of(part)}, not an object")
    kind = part.get("kind", part.get("type"))
    if kind == "text" or (kind is None and "text" in part):
        text = part.get("text")
        if not isinstance(text, str):
            raise invalid_params(f"{where}.text is {kind_of(text)}, not a string")
        return Text(text=text)
    if kind == "data" or (kind is None and "data" in part):
        if "data" not in part:
            raise invalid_params(f"{where} has no data")
        return Data(data=part["data"])
    if kind == "file":
        file = part.get("file")
        if not isinstance(file, dict):
            raise invalid_params(f"{where}.file is {kind_of(file)}, not an object")
        return _file(file, f"{where}.file")
    if kind is None and ("raw" in part or "url" in part):
        return _file(part, where)
    raise invalid_params(f"{where} is neither a text nor data nor a file")


def _file(fields: JsonObject, where: str) -> File:
    raw = _string(fields, ("raw", "bytes"), where)
    url = _string(fields, ("url", "uri"), where)
    if (raw is None) == (url is None):
        raise invalid_params(f"{where} must have either the file's bytes or its address")
    return File(
        content=None if raw is None else _bytes(raw, where),
        url=url,
        media_type=_string(fields, ("mediaType", "mimeType"), where),
        name=_string(fields, ("filename", "name"), where),
    )


def _bytes(text: str, where: str) -> bytes:
    standard = text.translate(_URL_ALPHABET).rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError) as exc:
        raise invalid_params(f"{where} has bytes that are not base64") from exc


def _string(fields: JsonObject, names: Sequence[str], where: str) -> str | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str):
            return value
        if value is not None:
            raise invalid_params(f"{where}.{name} is {kind_of(value)}, not a string")
    return None
