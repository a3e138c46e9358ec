"""
The parts of a message to an A2A 0.2 or 0.3 agent.

    {"kind": "text", "text": "…"}
    {"kind": "data", "data": {…}}
    {"kind": "file", "file": {"name", "mimeType", "bytes" | "uri"}}
    {"kind": "data", "data": {"id", "name", "response"}, "metadata": {"adk_type": "function_response"}}

The last one answers a function that an agent of Google's ADK has called and waits for. Data of 0.3 is an
object: any other value travels as JSON text.
"""

from __future__ import annotations

from typing import assert_never

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols.parts import DataPart, FilePart, MessagePart, TextPart, parts_in, read_parts

_REPLY_FIELDS = frozenset({"text", "data", "parts", "function_response"})
_FUNCTION_RESPONSE_FIELDS = frozenset({"id", "name", "response"})


def text_part(value: Json) -> JsonObject:
    return {"kind": "text", "text": value if isinstance(value, str) else encode(value).decode()}


def encode_parts(listed: list[Json], protocol: str) -> list[Json]:
    """Parts as a workflow or a person writes them; raises `ProtocolTranslationError`."""
    return [_encode_part(part) for part in read_parts(listed, protocol)]


def is_reply(data: Json) -> bool:
    """Whether this is a person's answer, `{text?, data?, parts?, function_response?}`."""
    return isinstance(data, dict) and bool(data) and data.keys() <= _REPLY_FIELDS


def reply_parts(data: Json, protocol: str) -> list[Json]:
    reply = data if isinstance(data, dict) else {}
    parts: list[Json] = []
    if reply.get("text") is not None:
        parts.append(text_part(reply["text"]))
    parts.extend(_function_responses(reply.get("function_response")))
    value = reply.get("data")
    if value is not None:
        parts.append(_function_response(value) or _data_part(value))
    given = parts_in(reply)
    if given:
        parts.extend(encode_parts(given, protocol))
    return parts or [text_part("")]


def _data_part(value: Json) -> JsonObject:
    return {"kind": "data", "data": value} if isinstance(value, dict) else text_part(value)


def _function_responses(value: Json) -> list[JsonObject]:
    if value is None:
        return []
    several = value if isinstance(value, list) else [value]
    return [_function_response(item) or _data_part(item) for item in several]


def _function_response(value: Json) -> JsonObject | None:
    if not isinstance(value, dict) or value.keys() != _FUNCTION_RESPONSE_FIELDS:
        return None
    response = value["response"]
    # ADK takes an object only, and calls a plain value its result.
    answer: JsonObject = response if isinstance(response, dict) else {"result": response}
    return {
        "kind": "data",
        "data": {"id": value["id"], "name": value["name"], "response": answer},
        "metadata": {"adk_type": "function_response"},
    }


def _encode_part(part: MessagePart) -> JsonObject:
    match part:
        case TextPart(text=text):
            return _with_metadata({"kind": "text", "text": text}, part)
        case DataPart(data=data):
            return _with_metadata(_data_part(data), part)
        case FilePart():
            return _file(part)
        case _:
            assert_never(part)


def _file(part: FilePart) -> JsonObject:
    file: JsonObject = {}
    if part.name is not None:
        file["name"] = part.name
    if part.media_type is not None:
        file["mimeType"] = part.media_type
    if part.raw is not None:
        file["bytes"] = part.raw
    else:
        file["uri"] = part.url
    written: JsonObject = {"kind": "file", "file": file}
    if part.metadata is not None:
        written["metadata"] = part.metadata
    return written


def _with_metadata(written: JsonObject, part: TextPart | DataPart) -> JsonObject:
    """Only files have a type and a name of their own in 0.3: those of others go into the metadata."""
    named = {"mediaType": part.media_type, "filename": part.name}
    optional_fields: JsonObject = {key: value for key, value in named.items() if value is not None}
    metadata = optional_fields | (part.metadata or {})
    if metadata:
        written["metadata"] = metadata
    return written
