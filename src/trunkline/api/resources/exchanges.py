"""Exchanges with agents, as they were on the wire: redacted and cut."""

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
        Annotated[bool | None, Meta(description="True: the body is longer than what is kept of it.")]
    ]
    body_notes: NotRequired[
        Annotated[
            list[str] | None,
            Meta(description="What `body` does not show of the body, in words; `notes` has it, too."),
        ]
    ]


class WireResponse(TypedDict):
    status: int
    headers: dict[str, str]
    body: str


class FrameResource(TypedDict):
    """One event of a stream."""

    at_ms: Annotated[float, Meta(description="When it came, in milliseconds after the request.")]
    data: str


class ExchangeResource(TypedDict):
    """One HTTP exchange with an agent, redacted and cut."""

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
            Literal["send", "stream", "poll", "cancel", "find", "card", "token", "push"],
            Meta(description="What it was for; `push`: the agent has called Trunkline."),
        ]
    ]
    frames: NotRequired[
        Annotated[
            list[FrameResource] | None,
            Meta(description="The events of a stream; the response's body has the same ones."),
        ]
    ]
    connect_ms: NotRequired[
        Annotated[
            float | None,
            Meta(
                description="When a connection to the agent was there, in milliseconds after the beginning; null: not"
                " known."
            ),
        ]
    ]
    first_byte_ms: NotRequired[
        Annotated[
            float | None,
            Meta(description="When the head of the answer was there, likewise; null: not known."),
        ]
    ]
    id: NotRequired[
        Annotated[int, Meta(description="Its number, which stays; one that belongs to no run has none.")]
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
    """Of a page. They are stored, and paged, in the order of their ends; a page shows them as they began."""
    ordered = in_order([_numbered(row, record) for row, record in exchanges])
    return ordered if payloads else [_without_payloads(record) for record in ordered]


def in_order(records: Sequence[bytes]) -> list[msgspec.Raw]:
    """Records of exchanges, as they began."""
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
