"""
Plain HTTP and HTTPS: the one door through which requests leave.

Of aiohttp it uses the connection pool and the C parser, not the session. What a session would do beside them
must not happen here (redirects, cookies, proxies from the environment, decompression, a second sending), and
without it the moment when the request is handed to the socket is known exactly: an error before it means
"never sent", one after it "sent, no answer". It also costs less than half.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple, Self

import aiohttp
from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawResponseMessage
from yarl import URL

from trunkline.agents.auth import RESERVED_HEADERS
from trunkline.agents.urls import UrlError, parse_url
from trunkline.bridge.transports.base import FIXED_HEADERS, TransportError
from trunkline.bridge.transports.guard import AddressPolicy
from trunkline.bridge.transports.names import GuardedResolver, Lookup, system_lookup
from trunkline.protocols.base import AgentAnswer

MAX_ANSWER_BYTES = 16 * 1024 * 1024
# Of one agent's answer: lines and fields longer than this, or more of them, are not an agent's.
_MAX_HEADER_BYTES = 16 * 1024
_MAX_HEADERS = 128
# Under the 5 s after which uvicorn and Node close an idle connection: a request that meets the close on its
# way is lost, and nobody can tell whether it was read.
_KEEP_ALIVE_SECONDS = 4.0
_NAMES_SECONDS = 5
_ROUTES = 4_096
_QUOTED_BYTES = re.compile(r"\bb['\"]")


class _Route(NamedTuple):
    """What is the same in every request to one URL."""

    request: aiohttp.ClientRequest
    # By method: the request line and the fixed headers.
    heads: dict[str, str]


class _Incoming:
    """An answer while it comes."""

    __slots__ = ("chunks", "message", "size")

    def __init__(self) -> None:
        self.message: RawResponseMessage | None = None
        self.chunks: list[bytes] = []
        self.size = 0

    def add(self, chunk: bytes, limit: int) -> None:
        self.chunks.append(chunk)
        self.size += len(chunk)
        if self.size > limit:
            raise _too_large(limit)

    def so_far(self) -> AgentAnswer | None:
        message = self.message
        if message is None:
            return None
        chunks = self.chunks
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        return AgentAnswer(message.code, _headers(message), body)


class HttpTransport:
    """
    Calls agents over HTTP/1.1. Made inside the running loop, used as a context.

    Name lookups are kept for a few seconds; idle connections too.
    """

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        # More than runs at once: the agents' own limits are kept by the bridge, file descriptors by this one.
        limit: int = 1_024,
        connect_timeout: float = 10.0,
        ssl_context: ssl.SSLContext | None = None,
        lookup: Lookup = system_lookup,
    ) -> None:
        self._policy = policy
        self._max_answer_bytes = max_answer_bytes
        self._connect_timeout = aiohttp.ClientTimeout(connect=connect_timeout)
        self._routes: dict[str, _Route] = {}
        self._connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(policy, lookup),
            ttl_dns_cache=_NAMES_SECONDS,
            limit=limit,
            keepalive_timeout=_KEEP_ALIVE_SECONDS,
            ssl=ssl_context or True,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._connector.close()

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - the transport alone can tell which part of the exchange it cut
    ) -> AgentAnswer:
        return await self._exchange("POST", url, headers, body, timeout)

    async def get(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - as above
    ) -> AgentAnswer:
        return await self._exchange("GET", url, headers, None, timeout)

    async def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> AgentAnswer:
        route = self._routes.get(url) or self._add_route(url)
        request = _encode(route.heads[method], headers, body)
        connection: Connection | None = None
        incoming = _Incoming()
        try:
            async with asyncio.timeout(seconds):
                connection, protocol = await self._connect(route.request)
                _write(protocol, request)
                answer = await self._receive(protocol, incoming)
            # An agent that answers before it has read everything leaves a connection on which the next
            # request would follow the rest of this one.
            if not protocol.writing_paused:
                connection.release()
                connection = None
        except TransportError as exc:
            # A new one: the resolver's may be shared with other calls to the same name.
            raise TransportError(exc.code, exc.message, partial=incoming.so_far()) from exc
        except (aiohttp.ClientError, HttpProcessingError, OSError) as exc:
            raise (_not_sent(exc) if connection is None else _not_answered(exc, seconds, incoming)) from exc
        finally:
            if connection is not None:
                _abort(connection)
        return answer

    def _add_route(self, url: str) -> _Route:
        try:
            parts = parse_url(url)
        except UrlError as exc:
            raise TransportError("agent_url_invalid", f"The agent's url cannot be called: {exc}.") from exc
        # The connector asks no resolver about an address that is written out.
        reason = None if parts.address is None else self._policy.check(parts.host, parts.address)
        if reason is not None:
            raise TransportError("agent_address_forbidden", f"The agent may not be called: {reason}.")
        fixed = "".join(f"{name}: {value}\r\n" for name, value in FIXED_HEADERS.items())
        route = _Route(
            # Made of the parsed parts: the text of the URL is read once, by us.
            aiohttp.ClientRequest("POST", URL.build(scheme=parts.scheme, host=parts.host, port=parts.port)),
            {
                method: f"{method} {parts.target} HTTP/1.1\r\nHost: {parts.authority}\r\n{fixed}"
                for method in ("GET", "POST")
            },
        )
        if len(self._routes) >= _ROUTES:
            self._routes.clear()
        self._routes[url] = route
        return route

    async def _connect(self, request: aiohttp.ClientRequest) -> tuple[Connection, ResponseHandler]:
        while True:
            connection = await self._connector.connect(request, [], self._connect_timeout)
            protocol = connection.protocol
            if protocol is not None and (_is_fresh(protocol) or _is_idle(protocol)):
                return connection, protocol
            connection.close()

    async def _receive(self, protocol: ResponseHandler, incoming: _Incoming) -> AgentAnswer:
        message, payload = await protocol.read()
        while 100 <= message.code < 200 and message.code != 101:
            message, payload = await protocol.read()
        incoming.message = message
        limit = self._max_answer_bytes
        length = message.headers.get("Content-Length", "")
        if length.isdecimal() and int(length) > limit:
            raise _too_large(limit)
        if payload.is_eof():
            incoming.add(payload.read_nowait(), limit)
        else:
            await _read_body(protocol, payload, incoming, limit)
        chunks = incoming.chunks
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        return AgentAnswer(message.code, _headers(message), body)


def _is_fresh(protocol: ResponseHandler) -> bool:
    return protocol.read_timeout is None


def _is_idle(protocol: ResponseHandler) -> bool:
    """
    Nothing has come since the last answer.

    What came unasked would be taken for the answer to the next request; a close that is not yet noticed would
    lose that request.
    """
    transport = protocol.transport
    if transport is None or protocol.should_close:
        return False
    readable = select.poll()
    readable.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return not readable.poll(0)


def _encode(head: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    if body is None:
        return f"{head}{_header_lines(headers)}\r\n".encode()
    return f"{head}{_header_lines(headers)}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _write(protocol: ResponseHandler, request: bytes) -> None:
    protocol.set_response_params(
        # None until the first request, see `_is_fresh`; 0 sets no timeout either.
        read_timeout=0,
        read_until_eof=True,
        auto_decompress=False,
        max_line_size=_MAX_HEADER_BYTES,
        max_field_size=_MAX_HEADER_BYTES,
        max_headers=_MAX_HEADERS,
    )
    transport = protocol.transport
    if transport is None:
        raise aiohttp.ServerDisconnectedError
    transport.write(request)


async def _read_body(
    protocol: ResponseHandler, payload: StreamReader, incoming: _Incoming, limit: int
) -> None:
    def lost(closed: asyncio.Future[None] | None) -> None:
        # aiohttp closes the connection over a broken chunk, but does not tell the reader of the body.
        if not payload.is_eof() and payload.exception() is None:
            payload.set_exception(protocol.exception() or aiohttp.ServerDisconnectedError())
        if closed is not None:
            _retrieve(closed)

    closed = protocol.closed
    if closed is None:
        lost(closed)
    else:
        closed.remove_done_callback(_retrieve)
        closed.add_done_callback(lost)
    try:
        while chunk := await payload.readany():
            incoming.add(chunk, limit)
    finally:
        if closed is not None and closed.remove_done_callback(lost):
            closed.add_done_callback(_retrieve)


def _retrieve(closed: asyncio.Future[None]) -> None:
    """Looks at how the connection ended, so that asyncio does not report an error that nobody waits for."""
    closed.exception()


def _abort(connection: Connection) -> None:
    # Not close(): that waits until the peer has taken what is still to be written, which it may never do.
    if connection.protocol is not None:
        connection.protocol.abort()
    connection.close()


def _header_lines(headers: Mapping[str, str]) -> str:
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    count = len(headers)
    if lines.count("\n") != count or lines.count("\r") != count or "\0" in lines:
        raise TransportError("request_not_encodable", "A request header contains a line break.")
    for name in headers:
        if name.lower() in RESERVED_HEADERS:
            raise TransportError("request_not_encodable", f"The request header {name} cannot be chosen.")
    return lines


def _headers(message: RawResponseMessage) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in message.raw_headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _too_large(limit: int) -> TransportError:
    return TransportError("agent_answer_too_large", f"The agent's answer is larger than {limit} bytes.")


def _not_sent(exc: Exception) -> TransportError:
    match exc:
        case aiohttp.ClientConnectorDNSError():
            return TransportError(
                "agent_dns_failed", f"The agent's host cannot be looked up: {_why(exc.os_error)}."
            )
        case aiohttp.ClientConnectorCertificateError():
            return TransportError("agent_tls_failed", f"TLS failed: {exc.certificate_error}.")
        case aiohttp.ClientSSLError():
            return TransportError("agent_tls_failed", f"TLS failed: {exc.os_error}.")
        case TimeoutError():
            return TransportError("agent_unreachable", "The agent cannot be reached: connect timed out.")
        case aiohttp.ClientConnectorError():
            return TransportError("agent_unreachable", f"The agent cannot be reached: {_why(exc.os_error)}.")
        case _:
            return TransportError("agent_unreachable", f"The agent cannot be reached: {exc}.")


def _why(error: OSError) -> str:
    # The connector's own text names the call that failed, not what happened.
    return os.strerror(error.errno) if error.errno is not None and error.errno > 0 else str(error)


def _symptom(error: HttpProcessingError) -> str:
    """What the parser found, without the agent's bytes: they may repeat a secret."""
    return " ".join(_QUOTED_BYTES.split(error.message)[0].split()).rstrip(":")


def _not_answered(exc: Exception, seconds: float, incoming: _Incoming) -> TransportError:
    partial = incoming.so_far()
    match exc:
        case TimeoutError():
            return TransportError(
                "agent_timeout",
                f"The agent did not answer within {max(round(seconds, 2), 0.01):g} s.",
                partial=partial,
            )
        case HttpProcessingError():
            return TransportError(
                "agent_answer_malformed", f"The agent's answer is not HTTP: {_symptom(exc)}."
            )
        case _ if partial is not None:
            return TransportError(
                "agent_connection_lost",
                f"The agent's answer broke off after {incoming.size} bytes of its body.",
                partial=partial,
            )
        case _:
            return TransportError("agent_connection_lost", "The agent closed the connection unanswered.")
