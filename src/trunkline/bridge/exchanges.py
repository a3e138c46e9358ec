"""
What was on the wire, as people may see it: redacted, cut, in the shape of `GET /runs/{id}/wire`.

A record is encoded once, when the call has ended, and is JSON text from then on: the API hands it out as it
is. No I/O here, and no aiohttp: the command line reads records too.
"""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Mapping, Sequence

import msgspec

from trunkline.bridge.curl import curl_command
from trunkline.bridge.redaction import Redaction
from trunkline.bridge.transports.base import FIXED_HEADERS
from trunkline.clock import Instant, rfc3339
from trunkline.jsontypes import JsonObject
from trunkline.protocols.base import AgentAnswer

# Enough to read what happened; whole outputs are with their steps.
MAX_BODY_BYTES = 64 * 1024
_REQUEST = "The request body"
_RESPONSE = "The response body"


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
) -> Exchange:
    """
    The record of one exchange.

    `answer` is also what had come of one that broke off (`TransportError.partial`); `error` says so then.
    """
    all_notes = [redaction.text(note) for note in notes]
    headers = redaction.sent_headers(sent.headers)
    headers.update(FIXED_HEADERS)
    body = _text(sent.body, redaction, _REQUEST, all_notes)
    return Exchange(
        step=step,
        attempt=attempt,
        started_at=rfc3339(started_at),
        duration_ms=duration_ms,
        request=WireRequest(sent.method, redaction.url(sent.url), headers, body),
        response=None if answer is None else _response(answer, redaction, all_notes),
        error=None if error is None else redaction.text(error),
        notes=all_notes,
    )


_encoder = msgspec.json.Encoder()


def encode_exchange(exchange: Exchange) -> bytes:
    return _encoder.encode(exchange)


def to_curl(exchange: Exchange | JsonObject) -> str:
    """A command that repeats the request; comments before it say what it cannot repeat."""
    known = exchange if isinstance(exchange, Exchange) else msgspec.convert(exchange, Exchange)
    comments = "".join(f"# {note}\n" for note in known.notes if note.startswith(_REQUEST))
    request = known.request
    return comments + curl_command(request.method, request.url, request.headers, request.body)


def _response(answer: AgentAnswer, redaction: Redaction, notes: list[str]) -> WireResponse:
    body = _text(answer.body, redaction, _RESPONSE, notes)
    return WireResponse(answer.status, redaction.received_headers(answer.headers), body)


def _text(body: bytes, redaction: Redaction, what: str, notes: list[str]) -> str:
    size = len(body)
    if size <= MAX_BODY_BYTES:
        return redaction.text(_decoded(body, what, notes))
    notes.append(f"{what} is cut: it has {size} bytes, {MAX_BODY_BYTES} are kept.")
    # Redacted before it is cut, or half a secret would remain at the edge. The edge of this piece may hold
    # half a secret too, so that much of it goes again.
    margin = max(4 * redaction.longest, 4)
    text = redaction.text(_decoded(body[: MAX_BODY_BYTES + margin], what, notes, whole=False))
    whole = text[: -max(redaction.longest, 1)]
    return whole.encode()[:MAX_BODY_BYTES].decode("utf-8", "ignore")


def _decoded(body: bytes, what: str, notes: list[str], *, whole: bool = True) -> str:
    # Not whole: the last character may be cut through without being wrong.
    try:
        return utf_8_decode(body, "strict", whole)[0]
    except UnicodeDecodeError:
        notes.append(f"{what} is not UTF-8; what is not is shown as \N{REPLACEMENT CHARACTER}.")
        return utf_8_decode(body, "replace", whole)[0]
