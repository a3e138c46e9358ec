"""Run events as CloudEvents 1.0, in structured mode, for systems that follow runs from outside."""

from __future__ import annotations

import msgspec

from trunkline.clock import Instant, rfc3339
from trunkline.jsontypes import encode
from trunkline.messages.records import OutgoingMessage

CONTENT_TYPE = b"application/cloudevents+json; charset=UTF-8"
SOURCE = "/trunkline/runs"
TYPE_PREFIX = "dev.trunkline.run."
_HEADERS = (("content-type", CONTENT_TYPE),)


class RunEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of one run; `id` is unique for the source, so that a second delivery can be told."""

    specversion: str = "1.0"
    id: str
    source: str = SOURCE
    type: str
    subject: str
    time: str
    datacontenttype: str = "application/json"
    # Extensions: what a follower filters by.
    workflow: str
    sequence: str
    # As stored in the history; it is not decoded on the way.
    data: msgspec.Raw


def event_message(
    topic: str, *, run_id: str, workflow: str, seq: int, event_type: str, at: Instant, data: bytes
) -> OutgoingMessage:
    event = RunEvent(
        id=f"{run_id}/{seq}",
        type=TYPE_PREFIX + event_type,
        subject=run_id,
        time=rfc3339(at),
        workflow=workflow,
        # CloudEvents' own extension for order is a text.
        sequence=str(seq),
        data=msgspec.Raw(data),
    )
    return OutgoingMessage(topic, run_id, encode(event), _HEADERS)
