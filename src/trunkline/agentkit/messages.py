"""
A message from a caller or from the agent, and what a handler reads in it.

    text    the text parts, one below the other; if they are a JSON object, or if there are none, the data's `text`,
            else its `query`, else the data as JSON
    data    the first data part, else the text if it is JSON, else the message's metadata where they are the whole
            input of which `text` is one field (so Trunkline sends it)
    input   the data, where there is any, else the text

So a handler finds the same input whichever dialect has carried it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Literal

import msgspec

from trunkline.agentkit.errors import invalid_params
from trunkline.agentkit.json_values import InvalidJson, Json, JsonObject, JsonTooDeep, decode, encode, kind_of
from trunkline.agentkit.parts import Data, Part, Text, read_parts, size_of

Role = Literal["user", "agent"]

_TEXT_FIELDS = ("text", "query")
_MAX_ID_CHARACTERS = 1_000
_OF_USERS = (None, "user", "ROLE_USER")


class Message(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    role: Role
    parts: tuple[Part, ...]
    task_id: str | None = None
    context_id: str | None = None
    metadata: JsonObject | None = None

    @property
    def text(self) -> str:
        texts = [part.text for part in self.parts if isinstance(part, Text)]
        if texts:
            whole = "\n".join(texts)
            return _named_text(_parsed(whole)) or whole
        data = self._data_part()
        if data is None or data.data is None:
            return ""
        return _named_text(data.data) or encode(data.data).decode()

    @property
    def data(self) -> Json:
        part = self._data_part()
        if part is not None:
            return part.data
        text = "\n".join(part.text for part in self.parts if isinstance(part, Text))
        # The whole input comes before a field of it that happens to be JSON.
        if self.metadata and _named_text(self.metadata) == text:
            return self.metadata
        return _parsed(text)

    @property
    def input(self) -> Json:
        data = self.data
        return self.text if data is None else data

    def key(self) -> bytes:
        """The same for a message that is sent again, in whichever dialect; another for one with another content."""
        return sha256(msgspec.json.encode(self)).digest()

    def size(self) -> int:
        """About how many bytes it takes."""
        return size_of(self.parts) + (0 if self.metadata is None else len(encode(self.metadata)))

    def _data_part(self) -> Data | None:
        return next((part for part in self.parts if isinstance(part, Data)), None)


def read_message(value: Json) -> Message:
    """What a caller sends; raises a refusal that says what is wrong with it."""
    if not isinstance(value, dict):
        raise invalid_params(f"message is {kind_of(value)}, not an object")
    message_id = _id(value, "messageId")
    if message_id is None:
        raise invalid_params("message.messageId is missing: it identifies a repeated message")
    if value.get("role") not in _OF_USERS:
        raise invalid_params('message.role must be "user" or "ROLE_USER"')
    metadata = value.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise invalid_params(f"message.metadata is {kind_of(metadata)}, not an object")
    return Message(
        id=message_id,
        role="user",
        parts=read_parts(value.get("parts")),
        task_id=_id(value, "taskId"),
        context_id=_id(value, "contextId"),
        metadata=metadata,
    )


def _id(value: JsonObject, name: str) -> str | None:
    found = value.get(name)
    if found is None or found == "":
        return None
    if not isinstance(found, str) or len(found) > _MAX_ID_CHARACTERS:
        raise invalid_params(f"message.{name} must be a string of at most {_MAX_ID_CHARACTERS:,} characters")
    return found


def _parsed(text: str) -> Json:
    """An object or a list that is sent as JSON text; None: it is another text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return decode(text)
    except (InvalidJson, JsonTooDeep):
        return None


def _named_text(data: Json) -> str | None:
    """The field that stands for the whole input."""
    if isinstance(data, dict):
        for name in _TEXT_FIELDS:
            found = data.get(name)
            if found and isinstance(found, str):
                return found
    return None
