"""
A request to a zone, read from bytes.

    {"jsonrpc": "2.0", "id": "6f0e…", "method": "execute_task", "params": {"channel": "C1", …}}

One request, never a batch and never a notification. Two readers may not understand the same bytes differently, since
the one may be the zone that checks and the other the one that runs: what leaves a choice (a name twice in one
object, a number that cannot be held) is refused. The id is kept as it was written, for the answer repeats it.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from math import isinf
from typing import NoReturn, cast

import msgspec

from trunkline.jsontypes import MAX_DEPTH, Json, JsonObject, is_too_deep
from trunkline.zones.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, ZoneFault, error_text

# What comes from outside ends up in log lines and in the answers of others.
_LONGEST_CORRELATION_ID = 256


class ZoneRequest(msgspec.Struct, frozen=True, kw_only=True):
    # The JSON text of the id.
    id: bytes
    method: str
    params: JsonObject | list[Json]

    def named_params(self) -> JsonObject:
        """Raises a fault for params by position."""
        if isinstance(self.params, dict):
            return self.params
        raise ZoneFault(
            INVALID_PARAMS,
            data={"fields": [{"path": "", "message": "params are passed by name: send an object"}]},
        )

    @property
    def correlation_id(self) -> str | None:
        given = self.params.get("correlation_id") if isinstance(self.params, dict) else None
        return given if isinstance(given, str) and 0 < len(given) <= _LONGEST_CORRELATION_ID else None


def read_request(body: bytes) -> ZoneRequest:
    """Raises a fault for an invalid request."""
    value = _read(body)
    if isinstance(value, list):
        raise _invalid("Batches are not supported: send one request at a time.")
    if not isinstance(value, dict):
        raise _invalid("A request must be a JSON object.")
    if value.get("jsonrpc") != "2.0":
        raise _invalid('jsonrpc must be "2.0".')
    if "id" not in value:
        raise _invalid("Notifications are not supported: give the request an id.")
    if not isinstance(value["id"], str | int | float) or isinstance(value["id"], bool):
        raise _invalid("id must be a string or a number.")
    method = value.get("method")
    if not isinstance(method, str):
        raise _invalid("method must be a string.")
    params = value.get("params", {})
    if not isinstance(params, dict | list):
        raise _invalid("params must be an object.")
    return ZoneRequest(id=_text_of_id(body), method=method, params=params)


class _RequestId(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw()


class _DuplicateName(Exception):
    """An object has the same name twice."""


def _object(pairs: list[tuple[str, Json]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _DuplicateName
    return members


def _float(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise ValueError("a number is too large")
    return number


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


# Slower than msgspec by a few microseconds, but the one that shows names that come twice.
_clear_values = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_no_number)
_values = json.JSONDecoder(parse_float=_float, parse_constant=_no_number)
_envelopes = msgspec.json.Decoder(_RequestId)


def _read(body: bytes) -> Json:
    try:
        text = body.decode()
        value, is_clear = _decoded(text)
        # With fewer brackets than levels it cannot be too deep.
        too_deep = body.count(b"[") + body.count(b"{") > MAX_DEPTH and is_too_deep(value)
    except RecursionError:
        value, is_clear, too_deep = None, True, True
    # Not chained: the texts of the causes could repeat a part of the body.
    except UnicodeDecodeError:
        raise _unreadable("It is not UTF-8.") from None
    except ValueError:
        raise _unreadable("It is not JSON, or has a number that cannot be represented.") from None
    if too_deep:
        raise _unreadable(f"It is nested more than {MAX_DEPTH} levels deep.")
    if not is_clear:
        raise _invalid("An object has the same name twice.")
    return value


def _decoded(text: str) -> tuple[Json, bool]:
    """The value, and whether every reader would find the same in it."""
    try:
        return cast("Json", _clear_values.decode(text)), True
    except _DuplicateName:
        # Which does not mean that the rest of it is JSON.
        return cast("Json", _values.decode(text)), False


def _text_of_id(body: bytes) -> bytes:
    try:
        return bytes(_envelopes.decode(body).id)
    except msgspec.DecodeError:
        # All that the first reader has let through.
        raise _unreadable("It contains an unpaired surrogate.") from None


def _unreadable(detail: str) -> ZoneFault:
    return ZoneFault(PARSE_ERROR, data={"detail": detail})


def _invalid(detail: str) -> ZoneFault:
    return ZoneFault(INVALID_REQUEST, data={"detail": detail})


NO_ID = b"null"
# The request cannot be identified; with the second code not even if its id could be read.
_WITHOUT_ID = frozenset({PARSE_ERROR, INVALID_REQUEST})


class ZoneReply(msgspec.Struct, frozen=True):
    body: bytes
    # For transports that have one.
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()


def with_result(id_: bytes, result: bytes) -> bytes:
    return b"".join((b'{"jsonrpc":"2.0","id":', id_, b',"result":', result, b"}"))


def with_error(id_: bytes, error: bytes) -> bytes:
    return b"".join((b'{"jsonrpc":"2.0","id":', id_, b',"error":', error, b"}"))


def with_fault(id_: bytes, fault: ZoneFault, correlation_id: str | None = None) -> bytes:
    shown = NO_ID if fault.code in _WITHOUT_ID else id_
    return with_error(shown, error_text(fault, correlation_id))


def invalid_request_reply(status: HTTPStatus, detail: str) -> ZoneReply:
    """The answer to a request with a wrong path, HTTP method or size."""
    fault = ZoneFault(INVALID_REQUEST, data={"detail": detail})
    return ZoneReply(with_fault(NO_ID, fault), status=int(status))
