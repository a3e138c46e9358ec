"""
HTTP and HTTPS: the only module that sends HTTP requests to agents.

Of aiohttp it uses the connection pool and the C parser, not the session. What a session would do in addition
must not happen here (redirects, cookies, proxies from the environment, decompression, a second sending), and
without it the moment when the request is handed to the socket is known exactly: an error before it means
"never sent", one after it "sent, no answer". It also costs less than half.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from time import monotonic
from types import TracebackType
from typing import NamedTuple, Self

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from yarl import URL

from trunkline.agents.authentication.auth_config import RESERVED_HEADERS
from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.agents.http_urls import UrlError, parse_url
from trunkline.protocols.base import AgentAnswer
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.answer_memory import CALL_MEMORY, COPIES, CallMemory, MemoryBudget
from trunkline.transports.base import FIXED_HEADERS, StreamedAnswer, StreamLimits, TransportError
from trunkline.transports.dns_resolver import GuardedResolver, Lookup, system_lookup
from trunkline.transports.failures import EXCHANGE_ERRORS, not_answered, not_sent
from trunkline.transports.http_response import (
    BufferedResponse,
    StreamedResponse,
    read_head,
    watch_for_disconnect,
)
from trunkline.transports.tls_contexts import TlsContexts

MAX_ANSWER_BYTES = 16 * 1024 * 1024
# Of one agent's answer: lines and fields longer than this, or more of them, are not an agent's.
_MAX_HEADER_BYTES = 16 * 1024
_MAX_HEADERS = 128
# Under the 5 s after which uvicorn and Node close an idle connection: a request that crosses the close
# is lost, and it is not known whether it was read.
_KEEP_ALIVE_SECONDS = 4.0
_NAMES_SECONDS = 5
_MAX_TEMPLATES = 4_096


class _RequestTemplate(NamedTuple):
    """What is the same in every request to one URL."""

    request: aiohttp.ClientRequest
    # By method: the request line and the fixed headers.
    heads: dict[str, str]


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
        memory: MemoryBudget | None = None,
    ) -> None:
        self._policy = policy
        self._memory = memory or MemoryBudget()
        self._max_answer_bytes = max_answer_bytes
        self._connect_timeout = aiohttp.ClientTimeout(connect=connect_timeout)
        self._trust = TlsContexts()
        self._templates: dict[tuple[str, TlsConfig | None], _RequestTemplate] = {}
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
        tls: TlsConfig | None = None,
    ) -> AgentAnswer:
        return await self._exchange("POST", self._template(url, tls), headers, body, timeout)

    async def get(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - as above
        tls: TlsConfig | None = None,
    ) -> AgentAnswer:
        return await self._exchange("GET", self._template(url, tls), headers, None, timeout)

    async def _exchange(
        self,
        method: str,
        route: _RequestTemplate,
        headers: Mapping[str, str],
        body: bytes | None,
        seconds: float,
    ) -> AgentAnswer:
        request = _encode(route.heads[method], headers, body)
        connection: Connection | None = None
        incoming = BufferedResponse()
        of_call = CALL_MEMORY.get()
        memory = of_call or CallMemory(self._memory)
        try:
            async with asyncio.timeout(seconds) as timeout:
                connection, protocol = await self._connect(route.request)
                incoming.connected()
                _write(protocol, request)
                answer = await incoming.receive(
                    protocol, self._max_answer_bytes, lambda size: memory.take(size * COPIES, timeout)
                )
                memory.shrink(incoming.size * COPIES)
            if _is_reusable(protocol):
                connection.release()
                connection = None
        except TransportError as exc:
            # A new one: the resolver's may be shared with other calls to the same name.
            raise TransportError(exc.code, exc.message, partial=incoming.partial()) from exc
        except EXCHANGE_ERRORS as exc:
            if connection is None:
                raise not_sent(exc) from exc
            raise not_answered(exc, seconds, incoming.partial(), incoming.size) from exc
        finally:
            if connection is not None:
                _abort(connection)
            if of_call is None:
                memory.release()
        return answer

    @asynccontextmanager
    async def stream(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: StreamLimits,
        tls: TlsConfig | None = None,
    ) -> AsyncGenerator[StreamedAnswer]:
        deadline = monotonic() + limits.total_seconds
        route = self._template(url, tls)
        request = _encode(route.heads["GET" if body is None else "POST"], headers, body)
        seconds = min(limits.first_seconds, limits.total_seconds)
        of_call = CALL_MEMORY.get()
        memory = of_call or CallMemory(self._memory)
        connection: Connection | None = None
        try:
            try:
                async with asyncio.timeout(seconds):
                    connection, protocol = await self._connect(route.request)
                    _write(protocol, request)
                    message, payload = await read_head(protocol)
            except TransportError as exc:
                raise TransportError(exc.code, exc.message) from exc
            except EXCHANGE_ERRORS as exc:
                raise (not_sent(exc) if connection is None else not_answered(exc, seconds, None, 0)) from exc
            with watch_for_disconnect(protocol, payload) as check_end:
                answer = StreamedResponse(message, payload, check_end, limits, deadline, memory.take)
                yield answer
                memory.shrink(answer.size)
            if answer.is_over and _is_reusable(protocol):
                connection.release()
                connection = None
        finally:
            if connection is not None:
                _abort(connection)
            if of_call is None:
                memory.release()

    def _template(self, url: str, tls: TlsConfig | None) -> _RequestTemplate:
        """Raises `TransportError`: the URL may not be called."""
        return self._templates.get((url, tls)) or self._add_template(url, tls)

    def _add_template(self, url: str, tls: TlsConfig | None) -> _RequestTemplate:
        try:
            parts = parse_url(url)
        except UrlError as exc:
            raise TransportError("agent_url_invalid", f"The agent's url cannot be called: {exc}.") from exc
        # The connector asks no resolver about an address that is written out.
        reason = None if parts.address is None else self._policy.check(parts.host, parts.address)
        if reason is not None:
            raise TransportError("agent_address_forbidden", f"The agent may not be called: {reason}.")
        fixed = "".join(f"{name}: {value}\r\n" for name, value in FIXED_HEADERS.items())
        route = _RequestTemplate(
            # Made of the parsed parts: the text of the URL is read once, by us. The connector keeps the
            # connections of one SSL context apart from those of another.
            aiohttp.ClientRequest(
                "POST",
                URL.build(scheme=parts.scheme, host=parts.host, port=parts.port),
                ssl=True if tls is None else self._trust.context(tls),
            ),
            {
                method: f"{method} {parts.target} HTTP/1.1\r\nHost: {parts.authority}\r\n{fixed}"
                for method in ("GET", "POST")
            },
        )
        if len(self._templates) >= _MAX_TEMPLATES:
            self._templates.clear()
        self._templates[url, tls] = route
        return route

    async def _connect(self, request: aiohttp.ClientRequest) -> tuple[Connection, ResponseHandler]:
        while True:
            connection = await self._connector.connect(request, [], self._connect_timeout)
            protocol = connection.protocol
            if protocol is not None and (_is_fresh(protocol) or _is_idle(protocol)):
                return connection, protocol
            connection.close()


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


def _is_reusable(protocol: ResponseHandler) -> bool:
    # An agent that answers before it has read everything leaves a connection on which the next request would
    # follow the rest of this one.
    return not protocol.writing_paused


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
    reserved = _reserved_among(tuple(headers))
    if reserved is not None:
        raise TransportError(
            "request_not_encodable",
            f"The request header {reserved} is set by Trunkline and cannot be overridden.",
        )
    return lines


# An agent gets the same few headers with every request.
@lru_cache(maxsize=1_024)
def _reserved_among(names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name.lower() in RESERVED_HEADERS), None)
