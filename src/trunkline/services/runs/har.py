"""
What was on the wire as an HTTP Archive (HAR 1.2), which browsers and proxies read.

    {"log": {"version", "creator", "pages": [one for each attempt], "entries": [one for each exchange]}}

What HAR has no name for begins with an underscore: `_step`, `_attempt`, `_kind`, `_error`, `_frames` (the events of a
stream). Records go in as they are kept, redacted and cut; nothing is added to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import parse_qsl, quote, urlsplit

from trunkline import __version__
from trunkline.jsontypes import Json, JsonObject
from trunkline.services.runs.stored_exchanges import StoredExchange, StoredRequest, StoredResponse
from trunkline.telemetry.redaction import REDACTED

MEDIA_TYPE = "application/har+json"
# Connections to agents know no other; HAR wants it said.
_HTTP_VERSION = "HTTP/1.1"
# HAR's value for an unknown size.
_UNKNOWN = -1


def to_har(exchanges: Iterable[StoredExchange], *, next_cursor: str | None = None) -> JsonObject:
    """`next_cursor`: where the next page of the same archive begins; it is left out where there is none."""
    ordered = sorted(exchanges, key=lambda exchange: exchange.started_at)
    first = {_page_of(exchange): exchange for exchange in reversed(ordered)}
    log: JsonObject = {
        "version": "1.2",
        "creator": {"name": "Trunkline", "version": __version__},
        "pages": [_page(exchange) for exchange in reversed(first.values())],
        "entries": [_entry(exchange) for exchange in ordered],
    }
    if next_cursor is not None:
        log["_next_cursor"] = next_cursor
    return {"log": log}


def _page_of(exchange: StoredExchange) -> str:
    return f"{exchange.step}/{exchange.attempt}"


def _page(exchange: StoredExchange) -> JsonObject:
    return {
        "startedDateTime": exchange.started_at,
        "id": _page_of(exchange),
        "title": f"{exchange.step}, attempt {exchange.attempt}",
        "pageTimings": {},
    }


def _entry(exchange: StoredExchange) -> JsonObject:
    entry: JsonObject = {
        "pageref": _page_of(exchange),
        "startedDateTime": exchange.started_at,
        "time": exchange.duration_ms,
        "request": _request(exchange.request),
        "response": _response(exchange.response),
        "cache": {},
        "timings": _timings(exchange),
        "_step": exchange.step,
        "_attempt": exchange.attempt,
        "_kind": exchange.kind,
    }
    if exchange.notes:
        entry["comment"] = "\n".join(exchange.notes)
    if exchange.error is not None:
        entry["_error"] = exchange.error
    if exchange.frames is not None:
        entry["_frames"] = [{"at_ms": frame.at_ms, "data": frame.data} for frame in exchange.frames]
    return entry


def _request(request: StoredRequest) -> JsonObject:
    given: JsonObject = {
        "method": request.method,
        # A URL has no brackets there.
        "url": request.url.replace(REDACTED, quote(REDACTED)),
        "httpVersion": _HTTP_VERSION,
        "cookies": [],
        "headers": _pairs(request.headers.items()),
        "queryString": _pairs(parse_qsl(urlsplit(request.url).query, keep_blank_values=True)),
        "headersSize": _UNKNOWN,
        "bodySize": len(request.body.encode()),
    }
    if request.body:
        given["postData"] = {
            "mimeType": _header(request.headers, "content-type", "application/octet-stream"),
            "text": request.body,
        }
    return given


def _response(response: StoredResponse | None) -> JsonObject:
    # None came: 0 is what browsers write then.
    answered = response or StoredResponse(0, {}, "")
    return {
        "status": answered.status,
        "statusText": _phrase(answered.status),
        "httpVersion": _HTTP_VERSION,
        "cookies": [],
        "headers": _pairs(answered.headers.items()),
        "content": {
            "size": len(answered.body.encode()),
            "mimeType": _header(answered.headers, "content-type", "x-unknown"),
            "text": answered.body,
        },
        "redirectURL": _header(answered.headers, "location", ""),
        "headersSize": _UNKNOWN,
        "bodySize": _UNKNOWN if response is None else len(answered.body.encode()),
    }


def _timings(exchange: StoredExchange) -> JsonObject:
    # Where it is known when the answer or its first event came, what follows is the time of receiving.
    first = exchange.first_byte_ms
    if first is None:
        first = exchange.frames[0].at_ms if exchange.frames else exchange.duration_ms
    first = min(first, exchange.duration_ms)
    timings: JsonObject = {"send": 0, "wait": first, "receive": round(exchange.duration_ms - first, 3)}
    if exchange.connect_ms is not None:
        connect = min(exchange.connect_ms, first)
        timings |= {"connect": connect, "wait": round(first - connect, 3)}
    return timings


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in pairs]


def _header(headers: dict[str, str], name: str, otherwise: str) -> str:
    return next((value for key, value in headers.items() if key.lower() == name), otherwise)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        # An agent may invent one.
        return ""
