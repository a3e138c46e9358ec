"""
Messages of callers: read in the forms of 0.3 and 1.0, written in that of 1.0.

    1.0   {"messageId", "contextId", "taskId", "role": "ROLE_USER", "parts": [{"text"} | {"data"} | {"raw"} | {"url"}]}
    0.3   {"kind": "message", "messageId", …, "role": "user", "parts": [{"kind": "text", "text"} | {"kind": "data",
           "data"} | {"kind": "file", "file": {"bytes" | "uri", "mimeType", "name"}}]}

Names may be in snake_case, and unknown fields are ignored.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import NamedTuple

import msgspec

from trunkline.id_generation import new_id
from trunkline.jsontypes import Json, JsonObject
from trunkline.messages import CallerMessage
from trunkline.publishing.errors import A2AError, ErrorKind, invalid_params

# Longer than any id that a client makes: a UUID, a URN, a name with a prefix.
MAX_ID_CHARACTERS = 1_000
# A context is looked up by its id.
MAX_CONTEXT_CHARACTERS = 255
MAX_PARTS = 1_000
MAX_LISTED = 100

_USER_ROLES = frozenset({"user", "ROLE_USER", 1})
_CONTENTS = ("text", "data", "raw", "url", "file")
# ProtoJSON takes both alphabets of base64.
_URL_ALPHABET = str.maketrans("-_", "+/")
# The A2A project's SDK marks data of 1.0 that it had to wrap for 0.3.
WRAPPED_DATA = "data_part_compat"


class ReceivedMessage(NamedTuple):
    """A message, with the task that it continues if it names one."""

    message: CallerMessage
    task_id: str | None


def field_of(fields: JsonObject, name: str) -> Json:
    """A field by its name in camelCase, or in snake_case; None if it is missing."""
    if name in fields:
        return fields[name]
    return fields.get("".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name))


def text_field(fields: JsonObject, name: str, most: int = MAX_ID_CHARACTERS) -> str | None:
    """An optional string; an empty one is none, as in ProtoJSON."""
    value = field_of(fields, name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise invalid_params(f"{name} must be a string")
    if len(value) > most:
        raise invalid_params(f"{name} must have at most {most:,} characters")
    return value


def object_field(fields: JsonObject, name: str) -> JsonObject | None:
    value = field_of(fields, name)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise invalid_params(f"{name} must be an object")
    return value


def whole_number(value: Json) -> int | None:
    """An integer, also one that was written as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if isinstance(value, int) or value.is_integer() else None


def flag(fields: JsonObject, name: str) -> bool | None:
    value = field_of(fields, name)
    if value is not None and not isinstance(value, bool):
        raise invalid_params(f"{name} must be true or false")
    return value


def history_length(fields: JsonObject, version: str) -> int | None:
    """How many messages of the history are wanted; None: all, which 0 means in 0.3."""
    value = field_of(fields, "historyLength")
    if value is None:
        return None
    length = whole_number(value)
    if length is None or length < 0:
        raise invalid_params("historyLength must be a whole number that is not negative")
    return None if version == "0.3" and length == 0 else length


def read_message(params: JsonObject, *, publication: str, caller: str, version: str) -> ReceivedMessage:
    """The `message` in the params of a send; raises `A2AError`."""
    fields = object_field(params, "message")
    if fields is None:
        raise invalid_params("message is required")
    message_id = text_field(fields, "messageId")
    if message_id is None:
        raise invalid_params("message.messageId is required")
    if field_of(fields, "role") not in _USER_ROLES:
        raise invalid_params("message.role must be ROLE_USER (user in 0.3)")
    context = text_field(fields, "contextId", MAX_CONTEXT_CHARACTERS)
    message = CallerMessage(
        message_id=message_id,
        context_id=context or new_id(),
        parts=_parts(field_of(fields, "parts")),
        metadata=object_field(fields, "metadata"),
        extensions=_texts(fields, "extensions"),
        reference_task_ids=_texts(fields, "referenceTaskIds"),
        publication=publication,
        caller=caller,
        version=version,
        chose_context=context is not None,
    )
    return ReceivedMessage(message, text_field(fields, "taskId"))


def _texts(fields: JsonObject, name: str) -> list[str]:
    value = field_of(fields, name)
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > MAX_LISTED:
        raise invalid_params(f"message.{name} must be a list of at most {MAX_LISTED} strings")
    texts = [text for text in value if isinstance(text, str) and len(text) <= MAX_ID_CHARACTERS]
    if len(texts) < len(value):
        raise invalid_params(f"message.{name} must be a list of strings")
    return texts


def _parts(value: Json) -> list[JsonObject]:
    if not isinstance(value, list) or not value:
        raise invalid_params("message.parts must be a list with at least one part")
    if len(value) > MAX_PARTS:
        raise invalid_params(f"message.parts must have at most {MAX_PARTS:,} parts")
    return [_part(f"message.parts[{index}]", part) for index, part in enumerate(value)]


def _part(where: str, value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise invalid_params(f"{where} must be an object")
    found = [name for name in _CONTENTS if value.get(name) is not None or (name == "data" and name in value)]
    if len(found) != 1:
        raise invalid_params(f"{where} must have exactly one of text, data, raw and url")
    part: JsonObject = {}
    _copy_texts(value, part, where)
    metadata = object_field(value, "metadata")
    content = value[found[0]]
    match found[0]:
        case "file":
            _read_file(where, content, part)
        case "data":
            part["data"], metadata = _unwrapped(content, metadata)
        case "raw":
            part["raw"] = _base64(where, content)
        case name:
            if not isinstance(content, str):
                raise invalid_params(f"{where}.{name} must be a string")
            part[name] = content
    if metadata:
        part["metadata"] = metadata
    return part


def _copy_texts(value: JsonObject, part: JsonObject, where: str) -> None:
    for name in ("filename", "mediaType"):
        text = text_field(value, name)
        if text is not None:
            part[name] = text
    del where


def _read_file(where: str, content: Json, part: JsonObject) -> None:
    """A file of 0.3."""
    if not isinstance(content, dict):
        raise invalid_params(f"{where}.file must be an object")
    raw, url = content.get("bytes"), content.get("uri")
    if (raw is None) == (url is None):
        raise invalid_params(f"{where}.file must have either bytes or uri")
    if raw is not None:
        part["raw"] = _base64(where, raw)
    elif isinstance(url, str):
        part["url"] = url
    else:
        raise invalid_params(f"{where}.file.uri must be a string")
    for name, ours in (("mimeType", "mediaType"), ("name", "filename")):
        text = text_field(content, name)
        if text is not None:
            part[ours] = text


def _unwrapped(data: Json, metadata: JsonObject | None) -> tuple[Json, JsonObject | None]:
    if metadata is None or metadata.get(WRAPPED_DATA) is not True:
        return data, metadata
    rest = {name: value for name, value in metadata.items() if name != WRAPPED_DATA}
    if isinstance(data, dict) and data.keys() == {"value"}:
        return data["value"], rest
    return data, rest


def _base64(where: str, value: Json) -> str:
    if not isinstance(value, str):
        raise invalid_params(f"{where} must have its bytes as a string in base64")
    standard = value.translate(_URL_ALPHABET).rstrip("=")
    standard += "=" * (-len(standard) % 4)
    try:
        b64decode(standard, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise invalid_params(f"{where} has bytes that are not base64") from exc
    return standard


def message_json(message: CallerMessage, task_id: str) -> JsonObject:
    """A caller's message as the history of its task has it."""
    fields: JsonObject = {
        "messageId": message.message_id,
        "contextId": message.context_id,
        "taskId": task_id,
        "role": "ROLE_USER",
        "parts": list(message.parts),
    }
    if message.metadata:
        fields["metadata"] = message.metadata
    if message.extensions:
        fields["extensions"] = list(message.extensions)
    if message.reference_task_ids:
        fields["referenceTaskIds"] = list(message.reference_task_ids)
    return fields


def continued(message: CallerMessage, context_id: str) -> CallerMessage:
    """A message that continues a task: it is in the task's context, and may name no other."""
    if message.chose_context and message.context_id != context_id:
        raise A2AError(ErrorKind.INVALID_PARAMS, "message.contextId is not the context of the task.")
    return msgspec.structs.replace(message, context_id=context_id)
