"""The A2A messages that start runs, as operators see them."""

from __future__ import annotations

from typing import Annotated, TypedDict

from msgspec import Meta

from trunkline.api.resources.common import JsonMapping
from trunkline.jsontypes import JsonObject
from trunkline.messages import decode_caller_message


class CallerMessageResource(TypedDict):
    """The A2A message that started a run."""

    publication: Annotated[
        str, Meta(description="What the caller has called.", examples=["workflows/tides", "agents/TideTable"])
    ]
    key: Annotated[str | None, Meta(description="Name of the caller's API key. Null if it had none.")]
    version: Annotated[str, Meta(description="Version of A2A that the caller speaks.", examples=["1.0"])]
    message_id: str
    context_id: str
    parts: Annotated[
        list[JsonMapping],
        Meta(
            description="In the form of A2A 1.0. The bytes of a file are left out: `raw_bytes` is their number."
        ),
    ]
    metadata: Annotated[JsonMapping | None, Meta(description="Null if the message has none.")]
    extensions: list[str]
    reference_task_ids: list[str]


def caller_message_resource(stored: bytes, started_by: str | None) -> CallerMessageResource:
    message = decode_caller_message(stored)
    # `a2a`, and the key's name if it had one.
    _, _, key = (started_by or "").partition(":")
    return {
        "publication": message.publication,
        "key": key or None,
        "version": message.version,
        "message_id": message.message_id,
        "context_id": message.context_id,
        "parts": [_without_bytes(part) for part in message.parts],
        "metadata": message.metadata,
        "extensions": message.extensions,
        "reference_task_ids": message.reference_task_ids,
    }


def _without_bytes(part: JsonObject) -> JsonObject:
    raw = part.get("raw")
    if not isinstance(raw, str):
        return part
    return {
        **{name: value for name, value in part.items() if name != "raw"},
        "raw_bytes": len(raw) // 4 * 3 - raw[-2:].count("="),
    }
