"""
Wire records: exchanges as people may see them, redacted and cut, in the shape of `GET /runs/{id}/wire`.

A record is encoded once, when the call has ended, and is JSON text from then on: the API hands it out as it
is. No I/O here, and no aiohttp: the command line reads records too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from trunkline.agents.transport_urls import forwarded_headers, transport_of
from trunkline.bridge.wire.curl import BodyFile, aws_command, curl_command, stdio_line
from trunkline.bridge.wire.stream_frames import MAX_BYTES, StreamFrame, StreamFrameRecorder
from trunkline.clock import Instant, rfc3339
from trunkline.jsontypes import JsonObject
from trunkline.protocols.base import AgentAnswer
from trunkline.telemetry.redaction import Redaction, redacted_text
from trunkline.transports.base import FIXED_HEADERS

# Enough to read what happened; whole outputs are with their steps. Where nothing else is set.
MAX_BODY_BYTES = MAX_BYTES
_REQUEST = "The request body"
_RESPONSE = "The response body"
_CUT_REQUEST = f"{_REQUEST} is cut"
_MORE = "The limit is the setting max_wire_bytes."
_NOT_IN_A_FILE_NAME = re.compile(r"[^A-Za-z0-9]+")

# What an exchange was for. In these, others have called us, so the request is theirs and the response ours: `push` is a
# push notification of an agent, and `caller` a request of the A2A caller whose task the run is.
INCOMING = frozenset({"push", "caller"})
ExchangeKind: TypeAlias = Literal[
    "send", "stream", "poll", "cancel", "find", "card", "token", "push", "caller"
]


class RecordedRequest(msgspec.Struct, frozen=True):
    method: str
    url: str
    headers: dict[str, str]
    body: str
    # The body is longer than what is kept of it.
    body_cut: bool | msgspec.UnsetType = msgspec.UNSET
    # What `body` does not show of the body, in words; the exchange's notes have it, too.
    body_notes: list[str] | msgspec.UnsetType = msgspec.UNSET


class BlobReference(msgspec.Struct, frozen=True):
    """A file of a run, as step outputs refer to it, too."""

    run: str
    id: str
    bytes: int
    href: str


class WholeBody(msgspec.Struct, frozen=True, kw_only=True):
    """Where the whole of a malformed answer is, which is longer than what a record shows."""

    # Where it is; None: in the record itself, up to `max_bytes`.
    blob: BlobReference | None = None
    max_bytes: int | None = None
    notes: tuple[str, ...] = ()


class RecordedResponse(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: str
    # The whole body, where `body` has only its beginning.
    blob: BlobReference | msgspec.UnsetType = msgspec.UNSET


class RecordedExchange(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP exchange of a step's attempt."""

    step: str
    attempt: int
    started_at: str
    duration_ms: float
    request: RecordedRequest
    response: RecordedResponse | None = None
    error: str | None = None
    notes: list[str] = []
    kind: ExchangeKind = "send"
    # The events of a stream, with their times; the response's body has the same ones.
    frames: list[StreamFrame] | None = None
    # When a connection was there, and when the answer began; None: not measured.
    connect_ms: float | None = None
    first_byte_ms: float | None = None


class SentRequest(msgspec.Struct, frozen=True):
    """A request as it was given to the transport."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""


def record_exchange(
    redaction: Redaction,
    sent: SentRequest,
    answer: AgentAnswer | None,
    *,
    step: str,
    attempt: int,
    started_at: Instant,
    duration_ms: float,
    error: str | None = None,
    notes: Sequence[str] = (),
    kind: ExchangeKind = "send",
    frames: StreamFrameRecorder | None = None,
    max_bytes: int = MAX_BODY_BYTES,
    whole: WholeBody | None = None,
) -> RecordedExchange:
    """
    The record of one exchange.

    `answer` is also what had come of one that broke off (`TransportError.partial`); `error` says so then. Where
    `frames` were collected, they are the answer's body. A body is kept up to `max_bytes`, and a malformed answer
    as `whole` says.
    """
    all_notes = [redaction.text(note) for note in notes]
    if kind in INCOMING:
        headers = redaction.received_headers(sent.headers)
    else:
        transport = transport_of(sent.url)
        headers = redaction.sent_headers(forwarded_headers(transport, sent.headers))
        if transport == "https":
            headers.update(FIXED_HEADERS)
    body_notes: list[str] = []
    body = redacted_text(sent.body, redaction, _REQUEST, body_notes, max_bytes, more=_MORE)
    request = RecordedRequest(
        sent.method,
        redaction.url(sent.url),
        headers,
        body,
        body_cut=len(sent.body) > max_bytes or msgspec.UNSET,
        body_notes=body_notes or msgspec.UNSET,
    )
    all_notes += body_notes
    response = None if answer is None else _response(answer, redaction, all_notes, frames, max_bytes, whole)
    timing = None if answer is None else answer.timing
    return RecordedExchange(
        step=step,
        attempt=attempt,
        started_at=rfc3339(started_at),
        duration_ms=duration_ms,
        request=request,
        response=response,
        error=None if error is None else redaction.text(error),
        notes=all_notes,
        kind=kind,
        frames=None if frames is None else frames.kept,
        connect_ms=None if timing is None else timing.connect_ms,
        first_byte_ms=None if timing is None else timing.first_byte_ms,
    )


_encoder = msgspec.json.Encoder()


def encode_exchange(exchange: RecordedExchange) -> bytes:
    return _encoder.encode(exchange)


def to_curl(exchange: RecordedExchange | JsonObject) -> str:
    """
    A command that repeats the request; comments before it say what it cannot repeat.

    For an agent in AgentCore it is one of the AWS command line; for a program, the line that it was given. Half
    a truncated body is not the request: if the record is truncated, the command reads the body from a file.
    """
    known = (
        exchange if isinstance(exchange, RecordedExchange) else msgspec.convert(exchange, RecordedExchange)
    )
    request = known.request
    # Records of an earlier version have only the exchange's notes.
    comments = (
        [note for note in known.notes if note.startswith(_REQUEST)]
        if isinstance(request.body_notes, msgspec.UnsetType)
        else [*request.body_notes]
    )
    body: str | BodyFile = request.body
    if request.body_cut is True or any(note.startswith(_CUT_REQUEST) for note in comments):
        body = _body_file(known)
        comments.append(f"Save the whole body as {body.name} first. Without that file nothing is sent.")
    match transport_of(request.url):
        case "https":
            command = curl_command(request.method, request.url, request.headers, body)
        case "aws-agentcore":
            command = aws_command(request.url, request.headers, body)
        case "stdio":
            command = stdio_line(body)
    return "".join(f"# {' '.join(comment.split())}\n" for comment in comments) + command


def _body_file(exchange: RecordedExchange) -> BodyFile:
    step = _NOT_IN_A_FILE_NAME.sub("-", exchange.step).strip("-")
    return BodyFile(f"body-of-{step}-attempt-{exchange.attempt}.txt")


def _response(
    answer: AgentAnswer,
    redaction: Redaction,
    notes: list[str],
    frames: StreamFrameRecorder | None,
    max_bytes: int,
    whole: WholeBody | None,
) -> RecordedResponse:
    headers = redaction.received_headers(answer.headers)
    # An agent may answer a request for a stream with a plain body.
    if frames is None or not frames.kept:
        limit = max_bytes if whole is None else whole.max_bytes or max_bytes
        body = redacted_text(answer.body, redaction, _RESPONSE, notes, limit, more=_MORE)
        notes += () if whole is None else whole.notes
        blob = msgspec.UNSET if whole is None else whole.blob or msgspec.UNSET
        return RecordedResponse(answer.status, headers, body, blob)
    notes += frames.notes
    return RecordedResponse(answer.status, headers, frames.as_body())


class AuxiliaryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One of them and what came of it, for the record."""

    kind: Literal["card", "token"]
    redaction: Redaction
    sent: SentRequest
    answer: AgentAnswer | None
    started_at: Instant
    duration_ms: float
    error: str | None = None
    notes: tuple[str, ...] = ()


# Gets every auxiliary request that was made.
AuxiliaryRecorder: TypeAlias = Callable[[AuxiliaryRequest], None]
