"""
Events in HTTP requests: Trunkline's own form, and CloudEvents 1.0.

    {"type", "key"?, "data"?, "id"?, "source"?}
    {"specversion", "id", "source", "type", "data"? | "data_base64"?, …}    structured: application/cloudevents+json
    [{…}, …]                                                                 batch: application/cloudevents-batch+json
    headers ce-specversion, ce-id, ce-source, ce-type, …                     binary: the body is the data

The key of a CloudEvent is its extension `key` or `partitionkey`, or else its `subject`.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

import msgspec

from trunkline.api.bodies import convert, decode_json
from trunkline.api.correlation_ids import find_header
from trunkline.errors import Invalid
from trunkline.jsontypes import Json, JsonObject
from trunkline.services.events.new_events import SentEvent

_VERSION = "1.0"
_KEYS = ("key", "partitionkey", "subject")


class EventRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An event."""

    type: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=255, description="Type of the event.", examples=["payment.received"]
        ),
    ]
    key: (
        Annotated[
            str | int | None, msgspec.Meta(description="What the event is about.", examples=["order-42"])
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    data: Annotated[Json, msgspec.Meta(extra_json_schema={"description": "Any JSON."})] = None
    id: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1,
                max_length=255,
                description="Identifies the event of its source: a repeated event changes nothing. Default: a new id.",
            ),
        ]
        | None
    ) = None
    source: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1, max_length=255, description="Sender of the event. Default: `trunkline`."
            ),
        ]
        | None
    ) = None


def read_events(headers: list[tuple[bytes, bytes]], body: bytes) -> tuple[list[SentEvent], bool]:
    """The events of a request, and whether it is a batch."""
    if find_header(headers, b"ce-specversion") is not None:
        return [_binary(headers, body)], False
    value = decode_json(body)
    if isinstance(value, list):
        return [_structured(_object(each)) for each in value], True
    event = _object(value)
    if "specversion" in event:
        return [_structured(event)], False
    asked = convert(event, EventRequest)
    return [
        SentEvent(type=asked.type, key=asked.key, data=asked.data, id=asked.id, source=asked.source)
    ], False


def _object(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise Invalid(
            "An event must be a JSON object.", fix='Send an object such as {"type": "payment.received"}.'
        )
    return value


def _structured(event: JsonObject) -> SentEvent:
    data = event.get("data")
    if "data_base64" in event:
        data = _decoded(event["data_base64"])
    return _cloud_event(event, data)


def _decoded(text: Json) -> Json:
    """Binary data as text: JSON has nothing else for it."""
    try:
        return base64.b64decode(str(text), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as exc:
        raise Invalid(
            "The event's data_base64 is not base64 of UTF-8 text.", fix="Send JSON or text as the data."
        ) from exc


def _binary(headers: list[tuple[bytes, bytes]], body: bytes) -> SentEvent:
    attributes: JsonObject = {
        name[3:].decode("latin-1"): value.decode("latin-1")
        for name, value in headers
        if name.startswith(b"ce-")
    }
    media_type = (find_header(headers, b"content-type") or b"").partition(b";")[0].strip().lower()
    if not body:
        data: Json = None
    elif media_type == b"application/json" or media_type.endswith(b"+json"):
        data = decode_json(body)
    else:
        try:
            data = body.decode()
        except UnicodeDecodeError as exc:
            raise Invalid("The event's data is not UTF-8.", fix="Send JSON or text as the data.") from exc
    return _cloud_event(attributes, data)


def _cloud_event(attributes: JsonObject, data: Json) -> SentEvent:
    if attributes.get("specversion") != _VERSION:
        raise Invalid(
            f"Unsupported CloudEvents specversion: {attributes.get('specversion')}.",
            fix=f"Send events with specversion {_VERSION}.",
        )
    required: dict[str, str] = {}
    for name in ("id", "source", "type"):
        value = attributes.get(name)
        if not isinstance(value, str) or not value:
            raise Invalid(
                f"The CloudEvent has no {name}.", fix=f"Set the attribute {name} to a non-empty string."
            )
        required[name] = value
    key = next((attributes[name] for name in _KEYS if attributes.get(name) not in (None, "")), None)
    return SentEvent(type=required["type"], key=key, data=data, id=required["id"], source=required["source"])
