"""
Agents in Amazon Bedrock AgentCore: one InvokeAgentRuntime for each request, whose bytes are its payload as they are.

    url      the runtime's ARN, `?qualifier=ENDPOINT` after it where another endpoint than its default one is meant
    session  the header X-Zone-Session, so that questions about a task reach the machine that has it; else a new one

boto3 signs and sends, with the credentials, the endpoint and the certificates that it is configured for where the
bridge runs. It waits, so each call has a thread, and there are only so many of them. What is HTTP's alone does not
exist here: other headers than those of a trace, GET, streams.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from threading import Lock, Thread
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self
from uuid import uuid4

import structlog

from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.agents.http_urls import UrlError
from trunkline.agents.transport_urls import AgentCoreRuntime, parse_runtime
from trunkline.protocols.base import AgentAnswer
from trunkline.telemetry import log_events
from trunkline.transports.base import StreamedAnswer, StreamLimits, TransportError
from trunkline.transports.failures import timed_out
from trunkline.transports.https import MAX_ANSWER_BYTES
from trunkline.transports.pending_request import PendingRequest

if TYPE_CHECKING:
    from trunkline.transports.aws_client import AgentCoreClients, InvokeResult

log = structlog.stdlib.get_logger()

# The service's own limits.
MAX_PAYLOAD_BYTES = 100_000_000
_SESSION_CHARACTERS = range(33, 257)

_SESSION = "x-zone-session"
# By our header: what InvokeAgentRuntime calls it, and how long it may be there.
_CARRIED = {
    "traceparent": ("traceParent", 128),
    "tracestate": ("traceState", 512),
    "baggage": ("baggage", 8192),
}
_MAX_CALLS = 128
_FIRST_DELAY_SECONDS = 0.2
# Together about half a minute.
_MAX_RETRIES = 7


class AgentCoreTransport:
    """
    Made inside the running loop, used as a context.

    A call that is cancelled, or whose time is up, ends at once for its caller; its thread ends when boto3 gives up
    waiting, and counts as one of `most_calls` until then.
    """

    def __init__(
        self,
        *,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        max_calls: int = _MAX_CALLS,
        connect_timeout: float = 10.0,
        first_delay: float = _FIRST_DELAY_SECONDS,
        max_retries: int = _MAX_RETRIES,
    ) -> None:
        self._max_answer_bytes = max_answer_bytes
        self._max_calls = max_calls
        self._connect_timeout = connect_timeout
        self._first_delay = first_delay
        self._max_retries = max_retries
        self._slots = asyncio.Semaphore(max_calls)
        self._loading = Lock()
        self._loaded_clients: AgentCoreClients | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._loaded_clients is not None:
            self._loaded_clients.close()

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - the transport alone can tell which part of the exchange it cut
        tls: TlsConfig | None = None,
    ) -> AgentAnswer:
        del tls
        runtime = _runtime(url)
        if len(body) > MAX_PAYLOAD_BYTES:
            message = f"The request has {len(body):,} bytes; AgentCore takes at most {MAX_PAYLOAD_BYTES:,}."
            raise TransportError("request_not_encodable", message)
        parameters = _parameters(runtime, headers)
        deadline = monotonic() + timeout
        for delay in self._delays():
            invoked = await self._invoke(runtime, body, parameters, deadline, timeout)
            if not invoked.is_throttled or monotonic() + delay >= deadline:
                return invoked.answer
            log.warning(
                log_events.AGENT_CALL_DELAYED, url=url, http_status=invoked.answer.status, seconds=delay
            )
            await asyncio.sleep(delay)
        return (await self._invoke(runtime, body, parameters, deadline, timeout)).answer

    def _delays(self) -> list[float]:
        # Drawn, so that calls that were refused together do not come back together.
        return [
            self._first_delay * 2**number * random.uniform(0.5, 1)  # noqa: S311 - no secret
            for number in range(self._max_retries)
        ]

    async def get(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - as above
        tls: TlsConfig | None = None,
    ) -> AgentAnswer:
        del url, headers, timeout, tls
        raise _refused("It does not support GET requests")

    @asynccontextmanager
    async def stream(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: StreamLimits,
        tls: TlsConfig | None = None,
    ) -> AsyncGenerator[StreamedAnswer]:
        del url, body, headers, limits, tls
        raise _refused("Streaming is not supported")
        yield

    async def _invoke(
        self,
        runtime: AgentCoreRuntime,
        body: bytes,
        parameters: Mapping[str, str],
        deadline: float,
        seconds: float,
    ) -> InvokeResult:
        request = PendingRequest(deadline)

        def invoke() -> InvokeResult:
            return self._clients().invoke(runtime, body, parameters, request)

        has_slot = False
        try:
            async with asyncio.timeout(deadline - monotonic()):
                await self._slots.acquire()
                has_slot = True
                return await _in_thread(invoke, self._slots.release)
        except TimeoutError as exc:
            if request.abandon():
                raise timed_out(seconds, None) from exc
            waited_for = "boto3 to be ready" if has_slot else f"one of {self._max_calls} calls to end"
            raise TransportError(
                "agent_unreachable", f"The call was not sent in time: it waited for {waited_for}."
            ) from exc
        finally:
            request.abandon()

    def _clients(self) -> AgentCoreClients:
        with self._loading:
            if self._loaded_clients is None:
                try:
                    from trunkline.transports.aws_client import AgentCoreClients  # noqa: PLC0415 - an extra, and slow
                except ImportError as exc:
                    raise TransportError(
                        "agent_transport_unavailable",
                        "The transport aws-agentcore needs boto3, which is not installed: "
                        "pip install 'trunkline[aws]'.",
                    ) from exc
                self._loaded_clients = AgentCoreClients(
                    max_calls=self._max_calls,
                    max_answer_bytes=self._max_answer_bytes,
                    connect_timeout=self._connect_timeout,
                )
            return self._loaded_clients


async def _in_thread(work: Callable[[], InvokeResult], after: Callable[[], None]) -> InvokeResult:
    """In a new daemon thread, which keeps no process alive: boto3 cannot be interrupted."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[InvokeResult] = loop.create_future()

    def ended(value: InvokeResult | None, error: Exception | None) -> None:
        after()
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        elif value is not None:
            result.set_result(value)

    def run() -> None:
        value: InvokeResult | None = None
        error: Exception | None = None
        try:
            value = work()
        except Exception as exc:  # noqa: BLE001 - the caller's to judge, whatever it is
            error = exc
        # Without a running loop no caller waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(ended, value, error)

    try:
        Thread(target=run, name="agentcore", daemon=True).start()
    except RuntimeError as exc:
        after()
        raise TransportError("agent_unreachable", f"The call was not sent: {exc}.") from exc
    return await result


def _runtime(url: str) -> AgentCoreRuntime:
    try:
        return parse_runtime(url)
    except UrlError as exc:
        raise TransportError("agent_url_invalid", f"The agent's url cannot be called: {exc}.") from exc


def _parameters(runtime: AgentCoreRuntime, headers: Mapping[str, str]) -> dict[str, str]:
    """What a call carries in addition to the payload."""
    given = {name.lower(): value for name, value in headers.items()}
    session = given.get(_SESSION) or str(uuid4())
    if len(session) not in _SESSION_CHARACTERS:
        message = f"The session of a call must have 33 to 256 characters, not {len(session)}."
        raise TransportError("request_not_encodable", message)
    parameters = {"runtimeSessionId": session}
    if runtime.qualifier is not None:
        parameters["qualifier"] = runtime.qualifier
    for name, (parameter, longest) in _CARRIED.items():
        if 0 < len(given.get(name, "")) <= longest:
            parameters[parameter] = given[name]
    return parameters


def _refused(why: str) -> TransportError:
    return TransportError("agent_url_invalid", f"The agent runs in AgentCore. {why}.")
