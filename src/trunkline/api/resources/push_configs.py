"""Push notification configs of published tasks. No response contains an address or credentials."""

from __future__ import annotations

from typing import Annotated, TypedDict

from msgspec import Meta

from trunkline.api.resources.common import NextCursor, Timestamp
from trunkline.clock import rfc3339
from trunkline.services.callbacks.push_configs import PushConfigStatus


class PushConfigResource(TypedDict):
    """A push notification config of a published task."""

    id: Annotated[str, Meta(description="Chosen by the caller.")]
    host: Annotated[str, Meta(description="Host and port of the receiver.")]
    version: Annotated[str, Meta(description="Version of A2A of the notifications.", examples=["1.0"])]
    created_at: Timestamp
    enabled: Annotated[bool, Meta(description="False: it was disabled after too many failed attempts.")]
    disabled_at: Timestamp | None
    failures: Annotated[int, Meta(description="Failed attempts in a row.")]
    error: Annotated[str | None, Meta(description="Why the last attempt failed.")]
    waiting: Annotated[int, Meta(description="Notifications that the receiver has not accepted yet.")]


class PushConfigPage(TypedDict):
    items: list[PushConfigResource]
    next_cursor: NextCursor


def push_config_resource(status: PushConfigStatus) -> PushConfigResource:
    return {
        "id": status.id,
        "host": status.host,
        "version": status.version,
        "created_at": rfc3339(status.created_at),
        "enabled": status.disabled_at is None,
        "disabled_at": None if status.disabled_at is None else rfc3339(status.disabled_at),
        "failures": status.failures,
        "error": status.error,
        "waiting": status.waiting,
    }
