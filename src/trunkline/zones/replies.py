"""An answer of a zone: one JSON-RPC response, whatever the status beside it."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from trunkline.zones.faults import INVALID_REQUEST, PARSE_ERROR, ZoneFault, error_text

NO_ID = b"null"
# Where nobody can know which request is meant; with the second one even if its id could be read.
_WITHOUT_ID = frozenset({PARSE_ERROR, INVALID_REQUEST})


class Reply(msgspec.Struct, frozen=True):
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


def refusal(status: HTTPStatus, detail: str) -> Reply:
    """The answer to what is no request to this zone at all: a wrong address, HTTP method or size."""
    fault = ZoneFault(INVALID_REQUEST, data={"detail": detail})
    return Reply(with_fault(NO_ID, fault), status=int(status))
