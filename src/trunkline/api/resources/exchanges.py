"""Exchanges with agents as they were on the wire, redacted and truncated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypedDict, cast

import msgspec
from msgspec import Meta

from trunkline.api.resources.common import JsonValue, NextCursor, Timestamp
from trunkline.jsontypes import decode


class WireRequest(TypedDict):
    method: str
    url: str
    headers: dict[str, str]
    body: str
    body_cut: NotRequired[
        Annotated[bool | None, Meta(description="Whether only the beginning of the body was stored.")]
    ]
    body_notes: NotRequired[
        Annotated[
            list[str] | None,
            Meta(
                description="How `body` differs from what was sent, such as truncation. Also part of `notes`."
            ),
        ]
    ]


class WholeBodyReference(TypedDict):
    """A file of the run that contains the whole body, redacted, up to `max_body_bytes`."""

    run: str
    id: str
    bytes: int
    href: str


class WireResponse(TypedDict):
    status: int
    headers: dict[str, str]
    body: str
    blob: NotRequired[
        Annotated[
            WholeBodyReference,
            Meta(
                description="The whole body of a malformed response, if `body` contains only its beginning."
            ),
        ]
    ]


class FrameResource(TypedDict):
    """One event of an event stream."""

    at_ms: Annotated[float, Meta(description="When it arrived, in milliseconds after the request.")]
    data: str


class ExchangeResource(TypedDict):
    """One HTTP exchange with an agent or an A2A caller, redacted and truncated."""

    step: str
    attempt: int
    started_at: Timestamp
    duration_ms: float
    request: WireRequest
    response: WireResponse | None
    error: JsonValue
    notes: list[str]
    kind: NotRequired[
        Annotated[
            Literal["send", "stream", "poll", "cancel", "find", "card", "token", "push", "caller"],
            Meta(
                description="Purpose of the exchange. `push`: a push notification from the agent to Trunkline. "
                "`caller`: a request to Trunkline from the A2A caller that started the run."
            ),
        ]
    ]
    frames: NotRequired[
        Annotated[
            list[FrameResource] | None,
            Meta(description="Events of an event stream. The response body contains the same events."),
        ]
    ]
    connect_ms: NotRequired[
        Annotated[
            float | None,
            Meta(
                description="Milliseconds from the start until the connection to the agent was established. "
                "Null if unknown."
            ),
        ]
    ]
    first_byte_ms: NotRequired[
        Annotated[
            float | None,
            Meta(
                description="Milliseconds from the start until the response headers arrived. Null if unknown."
            ),
        ]
    ]
    id: NotRequired[
        Annotated[
            int, Meta(description="Stable number of the exchange. Omitted for an exchange outside of a run.")
        ]
    ]


class WirePage(TypedDict):
    items: list[ExchangeResource]
    next_cursor: NextCursor


class _Beginning(msgspec.Struct):
    started_at: str


_beginnings = msgspec.json.Decoder(_Beginning)


def exchange_resources(
    exchanges: Sequence[tuple[int, bytes]], *, payloads: bool
) -> Sequence[msgspec.Raw | ExchangeResource]:
    """One page. Exchanges are stored and paged in the order in which they ended; a page sorts them by start time."""
    ordered = in_order([_numbered(row, record) for row, record in exchanges])
    return ordered if payloads else [_without_payloads(record) for record in ordered]


def in_order(records: Sequence[bytes]) -> list[msgspec.Raw]:
    """Records of exchanges, sorted by start time."""
    ordered = sorted(records, key=lambda record: _beginnings.decode(record).started_at)
    return [msgspec.Raw(record) for record in ordered]


def _numbered(row: int, record: bytes) -> bytes:
    return b'{"id":%d,' % row + record.removeprefix(b"{")


def _without_payloads(record: msgspec.Raw) -> ExchangeResource:
    exchange = cast("ExchangeResource", decode(bytes(record)))
    exchange["request"] = {**exchange["request"], "headers": {}, "body": ""}
    if exchange["response"] is not None:
        exchange["response"] = {**exchange["response"], "headers": {}, "body": ""}
    exchange["frames"] = None
    return exchange
