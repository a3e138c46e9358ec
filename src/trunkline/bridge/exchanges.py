"""
What was on the wire, as people may see it: redacted, cut, in the shape of `GET /runs/{id}/wire`.

A record is encoded once, when the call has ended, and is JSON text from then on: the API hands it out as it
is. No I/O here, and no aiohttp: the command line reads records too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from trunkline.agents.carriers import carried_headers, transport_of
from trunkline.bridge.curl import aws_command, curl_command, stdio_line
from trunkline.bridge.frames import Frame, Frames
from trunkline.clock import Instant, rfc3339
from trunkline.jsontypes import JsonObject
from trunkline.protocols.base import AgentAnswer
from trunkline.telemetry.record_text import record_text
from trunkline.telemetry.redaction import Redaction
from trunkline.transports.base import FIXED_HEADERS

# Enough to read what happened; whole outputs are with their steps.
MAX_BODY_BYTES = 64 * 1024
_REQUEST = "The request body"
_RESPONSE = "The response body"

# What an exchange was for. `push`: the agent has called us, so the request is its own and the response ours.
ExchangeKind: TypeAlias = Literal["send", "stream", "poll", "cancel", "find", "card", "token", "push"]


class WireRequest(msgspec.Struct, frozen=True):
    method: str
    url: str
    headers: dict[str, str]
    body: str


class WireResponse(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: str


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP exchange of a step's attempt."""

    step: str
    attempt: int
    started_at: str
    duration_ms: float
    request: WireRequest
    response: WireResponse | None = None
    error: str | None = None
    notes: list[str] = []
    kind: ExchangeKind = "send"
    # The events of a stream, with their times; the response's body has the same ones.
    frames: list[Frame] | None = None
    # When a connection was there, and when the answer began; None: nobody knows.
    connect_ms: float | None = None
    first_byte_ms: float | None = None


class Sent(msgspec.Struct, frozen=True):
    """A request as it was given to the transport."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""


def record(
    redaction: Redaction,
    sent: Sent,
    answer: AgentAnswer | None,
    *,
    step: str,
    attempt: int,
    started_at: Instant,
    duration_ms: float,
    error: str | None = None,
    notes: Sequence[str] = (),
    kind: ExchangeKind = "send",
    frames: Frames | None = None,
) -> Exchange:
    """
    The record of one exchange.

    `answer` is also what had come of one that broke off (`TransportError.partial`); `error` says so then. Where
    `frames` were collected, they are the answer's body.
    """
    all_notes = [redaction.text(note) for note in notes]
    if kind == "push":
        headers = redaction.received_headers(sent.headers)
    else:
        transport = transport_of(sent.url)
        headers = redaction.sent_headers(carried_headers(transport, sent.headers))
        if transport == "https":
            headers.update(FIXED_HEADERS)
    body = record_text(sent.body, redaction, _REQUEST, all_notes, MAX_BODY_BYTES)
    response = None if answer is None else _response(answer, redaction, all_notes, frames)
    timing = None if answer is None else answer.timing
    return Exchange(
        step=step,
        attempt=attempt,
        started_at=rfc3339(started_at),
        duration_ms=duration_ms,
        request=WireRequest(sent.method, redaction.url(sent.url), headers, body),
        response=response,
        error=None if error is None else redaction.text(error),
        notes=all_notes,
        kind=kind,
        frames=None if frames is None else frames.kept,
        connect_ms=None if timing is None else timing.connect_ms,
        first_byte_ms=None if timing is None else timing.first_byte_ms,
    )


_encoder = msgspec.json.Encoder()


def encode_exchange(exchange: Exchange) -> bytes:
    return _encoder.encode(exchange)


def to_curl(exchange: Exchange | JsonObject) -> str:
    """
    A command that repeats the request; comments before it say what it cannot repeat.

    For an agent in AgentCore it is one of the AWS command line; for a program, the line that it was given.
    """
    known = exchange if isinstance(exchange, Exchange) else msgspec.convert(exchange, Exchange)
    comments = "".join(f"# {note}\n" for note in known.notes if note.startswith(_REQUEST))
    request = known.request
    match transport_of(request.url):
        case "https":
            return comments + curl_command(request.method, request.url, request.headers, request.body)
        case "aws-agentcore":
            return comments + aws_command(request.url, request.headers, request.body)
        case "stdio":
            return comments + stdio_line(request.body)


def _response(
    answer: AgentAnswer, redaction: Redaction, notes: list[str], frames: Frames | None
) -> WireResponse:
    headers = redaction.received_headers(answer.headers)
    # An agent may answer the wish for a stream with a plain body.
    if frames is None or not frames.kept:
        return WireResponse(
            answer.status, headers, record_text(answer.body, redaction, _RESPONSE, notes, MAX_BODY_BYTES)
        )
    notes += frames.notes
    return WireResponse(answer.status, headers, frames.as_body())
