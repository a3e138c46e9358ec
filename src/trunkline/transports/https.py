"""
HTTP and HTTPS: the only module that sends HTTP requests to agents.

The client is our own, over httptools' parser (`http1/`). What others do in addition must not happen here
(redirects, cookies, proxies from the environment, decompression, a second sending), and with our own the moment
when the request is handed to the socket is known exactly: an error before it means "never sent", one after it
"sent, no answer".
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from time import monotonic, perf_counter
from types import TracebackType
from typing import NamedTuple, Self

from trunkline.agents.authentication.auth_config import RESERVED_HEADERS
from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.agents.http_urls import UrlError, parse_url
from trunkline.protocols.base import AgentAnswer, AnswerTiming
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.answer_memory import CALL_MEMORY, COPIES, CallMemory, MemoryBudget
from trunkline.transports.base import FIXED_HEADERS, StreamedAnswer, StreamLimits, TransportError
from trunkline.transports.failures import EXCHANGE_ERRORS, not_answered, not_sent
from trunkline.transports.http1.connection import AgentConnection
from trunkline.transports.http1.dns_resolver import GuardedResolver, Lookup, system_lookup
from trunkline.transports.http1.pool import AgentConnectionPool, Origin
from trunkline.transports.http1.streamed_response import StreamedResponse

MAX_ANSWER_BYTES = 16 * 1024 * 1024
_MAX_TEMPLATES = 4_096


class _RequestTemplate(NamedTuple):
    """What is the same in every request to one URL."""

    origin: Origin
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
        self._loop = asyncio.get_running_loop()
        self._policy = policy
        self._memory = memory or MemoryBudget()
        self._max_answer_bytes = max_answer_bytes
        self._connect_seconds = connect_timeout
        self._templates: dict[tuple[str, TlsConfig | None], _RequestTemplate] = {}
        self._origins: dict[tuple[str, str, int, TlsConfig | None], Origin] = {}
        self._pool = AgentConnectionPool(GuardedResolver(policy, lookup), ssl_context, limit)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._pool.close()

    def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: float,
        tls: TlsConfig | None = None,
    ) -> Coroutine[object, object, AgentAnswer]:
        return self._exchange("POST", self._template(url, tls), headers, body, timeout)

    def get(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout: float,
        tls: TlsConfig | None = None,
    ) -> Coroutine[object, object, AgentAnswer]:
        return self._exchange("GET", self._template(url, tls), headers, None, timeout)

    async def _exchange(
        self,
        method: str,
        template: _RequestTemplate,
        headers: Mapping[str, str],
        body: bytes | None,
        seconds: float,
    ) -> AgentAnswer:
        request = _encode(template.heads[method], headers, body)
        began = perf_counter()
        deadline = self._loop.time() + seconds
        origin = template.origin
        connection = self._pool.take(origin) or await self._connect(origin, seconds)
        connected = perf_counter()
        of_call = CALL_MEMORY.get()
        memory = of_call or CallMemory(self._memory)
        try:
            await connection.send(request, deadline, self._max_answer_bytes)
            if connection.wanted_bytes:
                await _read_when_there_is_memory(connection, memory, deadline)
            if connection.error is not None:
                raise connection.error
            memory.shrink(connection.size * COPIES)
            return _answer(connection, began, connected)
        except TransportError as exc:
            raise TransportError(
                exc.code, exc.message, partial=_partial(connection, began, connected)
            ) from exc
        except EXCHANGE_ERRORS as exc:
            partial = _partial(connection, began, connected)
            raise not_answered(exc, seconds, partial, connection.size) from exc
        finally:
            self._pool.release(connection, origin)
            if of_call is None:
                memory.release()

    @asynccontextmanager
    async def stream(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: StreamLimits,
        tls: TlsConfig | None = None,
    ) -> AsyncGenerator[StreamedAnswer]:
        ends_at = monotonic() + limits.total_seconds
        template = self._template(url, tls)
        request = _encode(template.heads["GET" if body is None else "POST"], headers, body)
        seconds = min(limits.first_seconds, limits.total_seconds)
        deadline = self._loop.time() + seconds
        origin = template.origin
        connection = self._pool.take(origin) or await self._connect(origin, seconds)
        of_call = CALL_MEMORY.get()
        memory = of_call or CallMemory(self._memory)
        try:
            try:
                await connection.send(request, deadline, limits.total_bytes, streamed=True)
                if connection.error is not None and not connection.has_head:
                    raise connection.error
            except EXCHANGE_ERRORS as exc:
                raise not_answered(exc, seconds, None, 0) from exc
            answer = StreamedResponse(connection, limits, ends_at, memory.take)
            yield answer
            memory.shrink(answer.size)
        finally:
            self._pool.release(connection, origin)
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
        # No resolver is asked about an address that is written out.
        reason = None if parts.address is None else self._policy.check(parts.host, parts.address)
        if reason is not None:
            raise TransportError("agent_address_forbidden", f"The agent may not be called: {reason}.")
        fixed = "".join(f"{name}: {value}\r\n" for name, value in FIXED_HEADERS.items())
        key = parts.scheme, parts.host, parts.port, tls
        if len(self._templates) >= _MAX_TEMPLATES:
            self._templates.clear()
            self._origins.clear()
        origin = self._origins.get(key)
        if origin is None:
            address = None if parts.address is None else parts.host
            origin = self._origins[key] = Origin(parts.scheme, parts.host, parts.port, address, tls)
        template = self._templates[url, tls] = _RequestTemplate(
            origin,
            {
                method: f"{method} {parts.target} HTTP/1.1\r\nHost: {parts.authority}\r\n{fixed}"
                for method in ("GET", "POST")
            },
        )
        return template

    async def _connect(self, origin: Origin, seconds: float) -> AgentConnection:
        try:
            async with asyncio.timeout(min(seconds, self._connect_seconds)):
                return await self._pool.connect(origin)
        except TransportError as exc:
            # A new one: the resolver's may be shared with other calls to the same name.
            raise TransportError(exc.code, exc.message) from exc
        except EXCHANGE_ERRORS as exc:
            raise not_sent(exc) from exc


def _encode(head: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    if body is None:
        return f"{head}{_header_lines(headers)}\r\n".encode()
    return f"{head}{_header_lines(headers)}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def _read_when_there_is_memory(
    connection: AgentConnection, memory: CallMemory, deadline: float
) -> None:
    """The rest of a large answer. The agent's time does not run while we wait."""
    clock = asyncio.get_running_loop().time
    while connection.wanted_bytes and connection.error is None:
        began = clock()
        await memory.take(connection.wanted_bytes * COPIES)
        deadline += clock() - began
        await connection.read_on(deadline)


def _answer(connection: AgentConnection, began: float, connected: float) -> AgentAnswer:
    chunks = connection.chunks
    timing = AnswerTiming(round((connected - began) * 1000, 3), round((connection.head_at - began) * 1000, 3))
    body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    return AgentAnswer(connection.status, connection.headers, body, timing)


def _partial(connection: AgentConnection, began: float, connected: float) -> AgentAnswer | None:
    return _answer(connection, began, connected) if connection.has_head else None


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
