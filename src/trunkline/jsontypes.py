"""What JSON can hold, as types, and the one way to encode and decode it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

if TYPE_CHECKING:
    Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
    JsonObject: TypeAlias = "dict[str, Json]"
else:
    # msgspec reads annotations at run time and cannot follow an alias that names itself.
    Json = Any
    JsonObject = dict[str, Any]

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def encode(value: object) -> bytes:
    """JSON text of a JSON value or a msgspec struct."""
    return _encoder.encode(value)


def decode(text: bytes | str) -> Json:
    """The JSON value of a text; raises `msgspec.DecodeError` when it is not JSON."""
    return _decoder.decode(text)
