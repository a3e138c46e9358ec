"""
One connection, with the bounds that the HTTP server does not set itself.

A request's head has a size and a time, its body a time to arrive (its size is the application's business); and what is
no HTTP at all is answered in the door's own form, like every other error.
"""

from __future__ import annotations

import asyncio
import ssl
from http import HTTPStatus
from typing import NamedTuple

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Of a response, within `write_seconds`: slower than any link that people use, fast enough that memory is freed.
_MIN_WRITTEN_BYTES = 256 * 1024
# How long a refused sender may go on: closing at once would reset the connection, and the answer would be lost.
_LINGER_SECONDS = 1.0


class HttpRefusal(NamedTuple):
    """Why a request was not even read, and what to do about it."""

    status: HTTPStatus
    name: str
    detail: str
    fix: str


class HttpConnection(HttpToolsProtocol):
    """Refuses heads that are too large, and requests that do not end."""

    # What a request must be, for the error message.
    invalid_http_fix = "Send HTTP/1.1."

    def refusal_response(self, refusal: HttpRefusal) -> bytes:
        """A whole HTTP response that ends the connection, in the door's own form."""
        raise NotImplementedError

    max_head_bytes = 64 * 1024
    idle_seconds = 10.0
    head_seconds = 10.0
    body_seconds = 60.0
    # A client that reads next to nothing of its response for so long is cut.
    write_seconds = 30.0

    # What of a request is arriving; None before the first one and between two of them.
    _part: str | None = None
    # Bytes that came while its head was not complete; a body's beginning may be among them.
    _received = 0
    _timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _refused = False

    # Accepted only to be rejected because of the limits.
    is_over_limit = False

    # As ASGI's TLS extension has it: what the client has shown of itself.
    _tls: dict[object, object] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as the server has it
        super().connection_made(transport)
        self._tls = _tls_of(transport)
        self._timer = self.loop.call_later(self.idle_seconds, transport.close)
        if self.is_over_limit:
            self._refuse(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "too-many-connections",
                "Too many requests are in progress, in total or from your address.",
                "Try again later, or raise max_connections or max_connections_per_address.",
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_write_timer()
        super().connection_lost(exc)
        self.on_closed()

    def on_closed(self) -> None:
        """Replaced by the code that counts connections."""

    @property
    def is_idle(self) -> bool:
        """No request is in progress: none has arrived completely, or it has its response."""
        return self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison] - before the first request

    def close_idle(self) -> None:
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._received == 0:
            self._stop_timer()
        if self._part != "body":
            self._received += len(data)
        super().data_received(data)
        if self._part != "body" and self._received > self.max_head_bytes:
            self._refuse_head()
        elif self._timer is None and (self._part is not None or self._received > 0):
            self._time_arrival()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        self._stop_write_timer()
        super().resume_writing()

    def _watch_writing(self) -> None:
        unwritten = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(self.write_seconds, self._cut_if_stalled, unwritten)

    def _cut_if_stalled(self, unwritten_before: int) -> None:
        """The client does not read: what is buffered for it would stay in memory for as long as it likes."""
        # A stream may have added to it meanwhile, but not more than one of its events.
        if unwritten_before - self.transport.get_write_buffer_size() < _MIN_WRITTEN_BYTES:
            self.transport.abort()
        else:
            self._watch_writing()

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def on_message_begin(self) -> None:
        self._part = "head"
        super().on_message_begin()
        if self._tls is not None:
            self.scope["extensions"] = {"tls": self._tls}

    def on_headers_complete(self) -> None:
        if self._refused:
            return
        self._stop_timer()
        self._part = "body"
        if self._received > self.max_head_bytes and self._head_bytes() > self.max_head_bytes:
            self._refuse_head()
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._stop_timer()
        self._part = None
        self._received = 0
        if not self._refused:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        del msg
        self._refuse(
            HTTPStatus.BAD_REQUEST,
            "invalid-http",
            "This is not a valid HTTP request.",
            self.invalid_http_fix,
        )

    def _head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _time_arrival(self) -> None:
        seconds = self.body_seconds if self._part == "body" else self.head_seconds
        self._timer = self.loop.call_later(seconds, self._end_arrival)

    def _stop_timer(self) -> None:
        if self._timer is not None and not self._refused:
            self._timer.cancel()
            self._timer = None

    def _end_arrival(self) -> None:
        if self._part == "body" and self.cycle.response_started:
            # It has its answer already, without having been heard out.
            self.transport.close()
            return
        self._refuse(
            HTTPStatus.REQUEST_TIMEOUT,
            "request-timeout",
            f"The request's {self._part or 'head'} did not arrive in time.",
            "Send the complete request again.",
        )

    def _refuse_head(self) -> None:
        self._refuse(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            "head-too-large",
            f"The request's address and headers are larger than {self.max_head_bytes} bytes.",
            "Send fewer or shorter headers, and large content in the body.",
        )

    def _refuse(self, status: HTTPStatus, name: str, detail: str, fix: str) -> None:
        if self._refused or self.transport.is_closing():
            return
        self._stop_timer()
        self._refused = True
        if self.cycle and not self.cycle.response_complete:
            if self.cycle.response_started or self._part != "body":
                # An answer is due already, and ours would be taken for it.
                self.transport.close()
                return
            # The application that waits for the rest of the body learns that it will not arrive.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.write(self.refusal_response(HttpRefusal(status, name, detail, fix)))
        # Over TLS one side cannot end alone.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._timer = self.loop.call_later(_LINGER_SECONDS, self.transport.close)


def _tls_of(transport: asyncio.Transport) -> dict[object, object] | None:
    connection: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    # The handshake has checked who signed it, or there would be no connection.
    certificate = None if connection is None else connection.getpeercert(binary_form=True)
    if certificate is None:
        return None
    return {"client_cert_chain": [ssl.DER_cert_to_PEM_cert(certificate)], "client_cert_error": None}
